#include "tests/bench/core/core_member.h"

#include <algorithm>

#include "common/check.h"
#include "tests/bench/core/objects.h"

namespace berth::bench {
namespace {

constexpr uint64_t kAnswersUntold = 128;

}  // namespace

CoreMember::CoreMember(RunCommand run_command, const CoreMemberSpec& spec)
    : run_(std::move(run_command)), number_(spec.number) {
  OpenNamespace open_namespace;
  open_namespace.spec.name = spec.name;
  open_namespace.spec.digest_bytes = kDigestBytes;
  open_namespace.fingerprint = {number_, 1};
  namespace_ = run<NamespaceOpened>(open_namespace).id;
  OpenWorker open_worker;
  open_worker.request_token = open_worker.token = {number_, 1};
  open_worker.name = open_worker.node = spec.name;
  open_worker.boot_id = {number_, 1};
  worker_.session = run<WorkerOpened>(open_worker).session;
  worker_.incarnation =
      run<ReattachBegun>(BeginReattach{worker_.session, {number_, 1}, 0, {}}).incarnation;
  run<ReattachEnded>(EndReattach{worker_, {}});
  run<Done>(LinkUp{worker_});
  RegisterPool pool;
  pool.caller = worker_;
  pool.spec.name = "cpu";
  pool.spec.page_bytes = kPageBytes;
  pool.spec.capacity_bytes = pool.spec.budget_bytes = pool.spec.backing_bytes = spec.pool_bytes;
  pool_ = run<PoolRegistered>(pool).pool;
  client_ = run<ClientOpened>(OpenClient{worker_,
                                         {number_, 2},
                                         {number_, 2},
                                         spec.name + "-engine",
                                         spec.name + ".life",
                                         {},
                                         {},
                                         1})
                .session;
}

std::vector<Digest> CoreMember::chain(uint64_t first, uint64_t count) const {
  return digests_of(number_, first, count);
}

Reserve CoreMember::reserve(uint64_t first, uint64_t count) {
  Reserve reserve;
  reserve.id = {worker_, client_, ++operation_, 1};
  reserve.namespace_id = namespace_;
  reserve.sizes = {kPageBytes};
  reserve.keys.reserve(count);
  for (const Digest& digest : chain(first, count))
    reserve.keys.push_back({digest, static_cast<uint32_t>(namespace_.value()), 0, 0});
  return reserve;
}

Commit CoreMember::commit(const Reserved& reserved) {
  Commit commit;
  commit.id = {worker_, client_, ++operation_, 2};
  for (uint32_t i = 0; i < reserved.pools.size(); ++i) {
    commit.replicas.push_back(ReplicaId(reserved.first.value() + i));
    commit.offsets.push_back(pages_++ * kPageBytes);
    commit.positions.push_back(i);
  }
  return commit;
}

Acquire CoreMember::acquire(uint64_t first, uint64_t count) {
  Acquire acquire;
  acquire.id = {worker_, client_, ++operation_, 1};
  acquire.namespace_id = namespace_;
  acquire.digests = chain(first, count);
  return acquire;
}

Release CoreMember::release(const Acquired& acquired) const {
  return {worker_, client_, {acquired.lease}};
}

std::vector<ReplicaId> CoreMember::store(uint64_t first, uint64_t count) {
  const auto reserved = run<Reserved>(reserve(first, count));
  BERTH_CHECK(reserved.pools.size() == count, "everything is granted");
  Commit committing = commit(reserved);
  run<Committed>(committing);
  return std::move(committing.replicas);
}

void CoreMember::fill(uint64_t objects, uint64_t batch) {
  for (uint64_t at = 0; at < objects; at += batch) {
    store(at, std::min(batch, objects - at));
    forget_answers();
  }
}

void CoreMember::take_away(const std::vector<ReplicaId>& replicas) {
  run<PerItem>(Evict{replicas});
  run<PerItem>(ReclaimAck{worker_, replicas});
}

void CoreMember::forget_answers() {
  if (operation_ - operation_told_ < kAnswersUntold) return;
  operation_told_ = operation_;
  run<Done>(Heartbeat{worker_, {}, {{client_, operation_}}});
}

}  // namespace berth::bench
