// The draft: its own writes are seen, a roll-back leaves no trace, the order of mutations installs.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Drafting : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 64 * kPage);
  SessionId client = join(worker);
};

TEST_CASE_METHOD(Drafting, "commands of one batch see what the ones before them did",
                 "[directory][draft]") {
  Draft draft(directory);
  const Reserve reserve = reserve_command(worker, client, ns, {1});
  const Result<Outcome> first = apply(draft, config, reserve, now);
  REQUIRE(first.has_value());
  const ReplicaId id = std::get<Reserved>(*first).first;
  REQUIRE(apply(draft, config, commit_command(worker, client, {id}), now).has_value());
  const Result<Outcome> acquired =
      apply(draft, config, acquire_command(worker, client, ns, {1}), now);
  CHECK(std::get<Acquired>(*acquired).classes.size() == 1);
  CHECK(draft.lease_count(id) == 1);
  CHECK(draft.pool_usage(pool).ready_replicas == 1);
  CHECK(directory.replicas().size() == 0);

  directory.install(draft.take_mutations());
  CHECK(check_invariants(directory) == "");
  CHECK(directory.lease_count(id) == 1);
}

TEST_CASE_METHOD(Drafting, "a refused command in the middle of a batch leaves no trace",
                 "[directory][draft]") {
  Draft draft(directory);
  REQUIRE(apply(draft, config, reserve_command(worker, client, ns, {1}), now).has_value());
  const PoolUsage before = draft.pool_usage(pool);
  const size_t staged = draft.staged_count();
  Commit bad =
      commit_command(worker, client, {ReplicaId(make_id<ReplicaId>(directory.meta().epoch, 1))});
  bad.offsets = {1};
  CHECK_FALSE(apply(draft, config, bad, now).has_value());
  CHECK(draft.staged_count() == staged);
  CHECK(draft.pool_usage(pool) == before);
  CHECK(draft.session_usage(client).reservations == 1);
}

TEST_CASE_METHOD(Drafting, "a pool that is registered, filled and changed in one batch installs",
                 "[directory][draft]") {
  Draft draft(directory);
  RegisterPool command;
  command.caller = worker.caller();
  command.spec = directory.find_pool(pool)->pool.spec;
  command.spec.name = "second";
  REQUIRE(apply(draft, config, command, now).has_value());
  Reserve big = reserve_command(worker, client, ns, {1, 2});
  REQUIRE(apply(draft, config, big, now).has_value());
  REQUIRE(
      apply(draft, config, FenceByOperator{worker.session, "", "test", false}, now).has_value());
  directory.install(draft.take_mutations());
  directory.set_counters(draft.counters());
  CHECK(check_invariants(directory) == "");
  drain_jobs();
  CHECK(directory.replicas().size() == 0);
}

}  // namespace
}  // namespace berth
