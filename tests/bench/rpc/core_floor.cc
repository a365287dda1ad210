#include "tests/bench/rpc/core_floor.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "common/check.h"
#include "server/directory/queries.h"
#include "tests/bench/rpc/objects.h"
#include "tests/bench/rpc/schedule.h"

namespace berth::bench {
namespace {

constexpr uint64_t kFillBatch = 512;
constexpr uint64_t kAnswersUntold = 128;
constexpr uint64_t kPoolBytes = uint64_t{1} << 44;
constexpr uint64_t kPassingFirst = uint64_t{1} << 40;

}  // namespace

CoreFloor::CoreFloor(uint64_t population) {
  config_.object_bytes_max = kPageBytes;
  config_.heartbeat_deadline = seconds(1'000'000);
  run<Restarted>(Restart{StoreId{1, 1}, false});
  OpenNamespace open_namespace;
  open_namespace.spec.name = "bench";
  open_namespace.spec.digest_bytes = kDigestBytes;
  open_namespace.fingerprint = {1, 1};
  namespace_ = run<NamespaceOpened>(open_namespace).id;
  OpenWorker open_worker;
  open_worker.request_token = open_worker.token = {1, 1};
  open_worker.name = open_worker.node = "bench";
  open_worker.boot_id = {1, 1};
  worker_.session = run<WorkerOpened>(open_worker).session;
  worker_.incarnation =
      run<ReattachBegun>(BeginReattach{worker_.session, {1, 1}, 0, {}}).incarnation;
  run<ReattachEnded>(EndReattach{worker_, {}});
  run<Done>(LinkUp{worker_});
  RegisterPool pool;
  pool.caller = worker_;
  pool.spec.name = "cpu";
  pool.spec.page_bytes = kPageBytes;
  pool.spec.capacity_bytes = pool.spec.budget_bytes = pool.spec.backing_bytes = kPoolBytes;
  run<PoolRegistered>(pool);
  client_ =
      run<ClientOpened>(OpenClient{worker_, {2, 2}, {2, 2}, "engine", "engine.life", {}, {}, 1})
          .session;
  for (; population_ < population; population_ += kFillBatch)
    store_once(population_, std::min(kFillBatch, population - population_));
  population_ = population;
}

double CoreFloor::items_per_second(Workload workload, uint64_t batch, double seconds) {
  const uint64_t start = now_nanos();
  spent_nanos_ = 0;
  uint64_t items = 0;
  do {
    if (workload == Workload::kProbe) probe_once(batch);
    if (workload == Workload::kAcquire) acquire_once(batch);
    if (workload == Workload::kStore) {
      const auto replicas = store_once(kPassingFirst + passing_, batch);
      passing_ += batch;
      const uint64_t spent = spent_nanos_;
      take_away(replicas);
      spent_nanos_ = spent;
    }
    items += batch;
  } while (static_cast<double>(now_nanos() - start) < seconds * 1e9);
  return static_cast<double>(items) * 1e9 / static_cast<double>(spent_nanos_);
}

template <class Expected>
Expected CoreFloor::run(const Command& command) {
  const uint64_t start = now_nanos();
  const Decision decision = decide(directory_, config_, {&command, 1}, now_);
  BERTH_CHECK(decision.outcomes[0].has_value(), "the core takes every command of the floor");
  install(directory_, decision);
  spent_nanos_ += now_nanos() - start;
  now_ = now_ + milliseconds(1);
  return std::get<Expected>(*decision.outcomes[0]);
}

std::vector<Digest> CoreFloor::chain(uint64_t first, uint64_t count) const {
  std::string bytes;
  append_digests(bytes, 1, first, count);
  std::vector<Digest> digests(count);
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(digests[i].bytes.data(), bytes.data() + i * kDigestBytes, kDigestBytes);
  return digests;
}

uint64_t CoreFloor::random_first(uint64_t batch) {
  BERTH_CHECK(population_ >= batch, "the population holds at least one batch");
  return next_random(chance_) % (population_ - batch + 1);
}

void CoreFloor::probe_once(uint64_t batch) {
  const std::vector<Digest> digests = chain(random_first(batch), batch);
  const uint64_t start = now_nanos();
  const Namespace* ns = directory_.find<Namespace>(namespace_);
  const auto readers = readers_for(directory_, *ns, client_, {});
  const ProbeAnswer answer = probe(directory_, *ns, digests, *readers);
  spent_nanos_ += now_nanos() - start;
  BERTH_CHECK(answer.classes.size() == batch, "the chain is there");
}

void CoreFloor::acquire_once(uint64_t batch) {
  Acquire acquire;
  acquire.id = {worker_, client_, ++operation_, 1};
  acquire.namespace_id = namespace_;
  acquire.digests = chain(random_first(batch), batch);
  const auto acquired = run<Acquired>(acquire);
  BERTH_CHECK(acquired.classes.size() == batch, "the chain is there");
  run<PerItem>(Release{worker_, client_, {acquired.lease}});
  forget_answers();
}

std::vector<ReplicaId> CoreFloor::store_once(uint64_t first_object, uint64_t batch) {
  Reserve reserve;
  reserve.id = {worker_, client_, ++operation_, 1};
  reserve.namespace_id = namespace_;
  reserve.sizes = {kPageBytes};
  for (const Digest& digest : chain(first_object, batch))
    reserve.keys.push_back({digest, static_cast<uint32_t>(namespace_.value()), 0, 0});
  const auto reserved = run<Reserved>(reserve);
  BERTH_CHECK(reserved.pools.size() == batch, "everything is granted");
  Commit commit;
  commit.id = {worker_, client_, ++operation_, 2};
  for (uint64_t i = 0; i < batch; ++i) {
    commit.replicas.push_back(ReplicaId(reserved.first.value() + i));
    commit.offsets.push_back(pages_++ * kPageBytes);
  }
  run<Committed>(commit);
  forget_answers();
  return std::move(commit.replicas);
}

// As a heartbeat lets the server forget them.
void CoreFloor::forget_answers() {
  if (operation_ - operations_told_ < kAnswersUntold) return;
  operations_told_ = operation_;
  run<Done>(Heartbeat{worker_, {}, {{client_, operation_}}});
}

void CoreFloor::take_away(const std::vector<ReplicaId>& replicas) {
  run<PerItem>(Evict{replicas});
  run<PerItem>(ReclaimAck{worker_, replicas});
}

}  // namespace berth::bench
