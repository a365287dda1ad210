// Draining pools and evicting namespaces: hidden at once, retired in slices, and what that does not
// touch.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Drained : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 100 * kPage);
  SessionId client = join(worker);

  size_t hits(const std::vector<int>& chunks) {
    return probe_chunks(client, ns, chunks).classes.size();
  }
  void acknowledge_all() {
    std::vector<ReplicaId> retiring;
    for (const ReplicaId id : directory.find_pool(pool)->retiring) retiring.push_back(id);
    if (!retiring.empty()) must<PerItem>(ReclaimAck{worker.caller(), retiring});
  }
  std::vector<JobId> jobs() const {
    std::vector<JobId> ids;
    for (const auto& [id, job] : directory.jobs()) ids.push_back(id);
    return ids;
  }
  void run_one_slice() { must<JobRan>(RunJob{directory.jobs().begin()->first}); }
};

TEST_CASE_METHOD(Drained, "a draining pool is hidden at once, and its job ends when it is empty",
                 "[directory][drain]") {
  config.slice_records = 2;
  store(worker, client, ns, {1, 2, 3, 4, 5});
  const LeaseId lease = acquire(worker, client, ns, {1}).lease;
  CHECK(must<Draining>(Drain{pool, {}}).replicas_left == 5);
  CHECK(needs_sync);
  CHECK(probe_chunks(client, ns, {2}).miss == MissReason::kRetiring);
  CHECK(acquire(worker, client, ns, {2}).replicas.empty());
  CHECK(usage(pool).ready_replicas == 5);  // no slice has run
  for (int slice = 0; slice < 5; ++slice) run_one_slice();
  CHECK(usage(pool).ready_replicas == 0);
  acknowledge_all();
  CHECK(usage(pool).replicas() == 1);  // the lease keeps one
  run_one_slice();
  CHECK(directory.jobs().size() == 1);
  must<PerItem>(Release{worker.caller(), client, {lease}});
  acknowledge_all();
  run_one_slice();
  CHECK(directory.jobs().empty());
  CHECK(directory.find<Pool>(pool)->state == PoolState::kDraining);  // it stays, and out of use
  CHECK(codes_text(reserve(worker, client, ns, {9}).codes) == "skipped_no_pool");
}

TEST_CASE_METHOD(Drained, "a pool that is put back into use shows what was not retired yet",
                 "[directory][drain]") {
  config.slice_records = 1;
  store(worker, client, ns, {1, 2, 3});
  must<Draining>(Drain{pool, {}});
  run_one_slice();
  must<Draining>(Undrain{pool, {}});
  CHECK(directory.jobs().empty());
  CHECK(hits({1}) + hits({2}) + hits({3}) == 2);
  CHECK(codes_text(reserve(worker, client, ns, {9}).codes) == "granted");
}

TEST_CASE_METHOD(Drained, "what was granted before a drain retires as it is committed",
                 "[directory][drain]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  must<Draining>(Drain{pool, {}});
  run_one_slice();
  must<Committed>(commit_command(worker, client, {reserved.first}));
  CHECK(replica(reserved.first).state == ReplicaState::kRetiring);
  CHECK(replica(reserved.first).why == Why::kPoolDraining);
  acknowledge_all();
  run_one_slice();
  CHECK(directory.jobs().empty());
}

TEST_CASE_METHOD(Drained, "a worker is drained pool by pool, and repeating it answers what is left",
                 "[directory][drain]") {
  const PoolId second = open_pool(worker, 10 * kPage, Scope::kHost, "second");
  store(worker, client, ns, {1, 2});
  CHECK(must<Draining>(Drain{{}, worker.session}).pools == std::vector<PoolId>{pool, second});
  for (int slice = 0; slice < 4; ++slice)
    for (const JobId id : jobs()) must<JobRan>(RunJob{id});
  CHECK(must<Draining>(Drain{{}, worker.session}).replicas_left == 2);
  acknowledge_all();
  CHECK(must<Draining>(Drain{{}, worker.session}).replicas_left == 0);
}

TEST_CASE_METHOD(Drained, "a drain goes on after a restart", "[directory][drain]") {
  config.slice_records = 1;
  store(worker, client, ns, {1, 2, 3});
  must<Draining>(Drain{pool, {}});
  run_one_slice();
  restart();
  CHECK(directory.jobs().size() == 1);
  for (int slice = 0; slice < 4; ++slice) run_one_slice();
  CHECK(usage(pool).ready_replicas == 0);
}

TEST_CASE_METHOD(Drained, "who is to be drained must exist and be one thing",
                 "[directory][drain]") {
  CHECK(refused(Drain{}) == Reason::kInvalidArgument);
  CHECK(refused(Drain{pool, worker.session}) == Reason::kInvalidArgument);
  CHECK(refused(Drain{PoolId(77), {}}) == Reason::kInvalidArgument);
  CHECK(refused(Drain{{}, client}) == Reason::kUnknownSession);
}

TEST_CASE_METHOD(Drained, "an evicted namespace misses at once, and what comes after it hits",
                 "[directory][evict]") {
  config.slice_records = 2;
  store(worker, client, ns, {1, 2, 3, 4, 5});
  const NamespaceId other = open_namespace("other");
  store(worker, client, other, {1, 2});
  must<JobStarted>(EvictNamespace{"llama"});
  CHECK(needs_sync);
  CHECK(probe_chunks(client, ns, {1}).miss == MissReason::kRetiring);
  CHECK(usage(pool).ready_replicas == 7);  // no slice has run
  // Stored again while the old copies still wait for their slice.
  const std::vector<ReplicaId> fresh = store(worker, client, ns, {1});
  CHECK(hits({1}) == 1);
  drain_jobs();
  CHECK(usage(pool).ready_replicas == 3);
  CHECK(hits({1}) == 1);
  CHECK(replica(fresh[0]).state == ReplicaState::kReady);
  CHECK(probe_chunks(client, other, {1, 2}).classes.size() == 2);
}

TEST_CASE_METHOD(Drained, "what an evicted namespace was granted before retires as it is committed",
                 "[directory][evict]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  must<JobStarted>(EvictNamespace{"llama"});
  drain_jobs();
  must<Committed>(commit_command(worker, client, {reserved.first}));
  CHECK(replica(reserved.first).why == Why::kNamespaceEvicted);
  CHECK(hits({1}) == 0);
}

TEST_CASE_METHOD(Drained, "evicting a namespace again while it is evicted widens the one job",
                 "[directory][evict]") {
  config.slice_records = 1;
  store(worker, client, ns, {1, 2, 3});
  const JobId first = must<JobStarted>(EvictNamespace{"llama"}).job;
  run_one_slice();
  store(worker, client, ns, {4});
  CHECK(must<JobStarted>(EvictNamespace{"llama"}).job == first);
  CHECK(hits({4}) == 0);
  drain_jobs();
  CHECK(usage(pool).ready_replicas == 0);
}

TEST_CASE_METHOD(Drained, "a namespace's eviction goes on after a restart", "[directory][evict]") {
  config.slice_records = 1;
  store(worker, client, ns, {1, 2, 3});
  must<JobStarted>(EvictNamespace{"llama"});
  run_one_slice();
  restart();
  drain_jobs();
  CHECK(usage(pool).ready_replicas == 0);
}

TEST_CASE_METHOD(Drained, "what a policy chose stays if somebody reads it by then",
                 "[directory][evict]") {
  const std::vector<ReplicaId> stored = store(worker, client, ns, {1, 2, 3});
  acquire(worker, client, ns, {1});
  must<PerItem>(PinChunks{"llama", {digest(2)}, PinKind::kHard, {}});
  const PerItem answer = must<PerItem>(MakeRoom{pool, stored, Why::kMadeRoom, {}});
  CHECK(answer.done == std::vector<uint8_t>{0, 0, 1});
  CHECK(asks.size() == 1);  // one for the slice
  CHECK(events.size() == 1);
}

TEST_CASE_METHOD(Drained, "the eviction setting is durable and can be reset",
                 "[directory][evict]") {
  must<Done>(SetEviction{false, {policy::EvictionKind::kLru, 700, 600}});
  CHECK(needs_sync);
  restart();
  CHECK(directory.find<EvictionSetting>({})->high_permille == 700);
  must<Done>(SetEviction{true, {}});
  CHECK_FALSE(directory.find<EvictionSetting>({}));
  CHECK(refused(SetEviction{false, {policy::EvictionKind::kLru, 600, 600}}) ==
        Reason::kInvalidArgument);
  CHECK(refused(SetEviction{false, {policy::EvictionKind::kLru, 1001, 600}}) ==
        Reason::kInvalidArgument);
}

}  // namespace
}  // namespace berth
