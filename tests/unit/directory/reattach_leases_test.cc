// Leases in a re-attach, as the agent sends them: after every replica, in chunks of their own that
// name no pool.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct ReattachLeases : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 64 * kPage);
  SessionId client = join(worker);
};

TEST_CASE_METHOD(ReattachLeases, "a chunk that holds only leases keeps them",
                 "[directory][reattach][lease]") {
  const ReplicaId stored = store(worker, client, ns, {1}).front();
  const LeaseId lease = acquire(worker, client, ns, {1}).lease;
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {3, 3};
  worker.incarnation = must<ReattachBegun>(begin).incarnation;
  ReconcileChunk rows{worker.caller(),
                      false,
                      pool,
                      directory.namespaces().begin()->second.fingerprint,
                      {row(stored, 1, replica(stored).offset, LedgerState::kSealed)},
                      {}};
  must<ChunkReconciled>(rows);
  ReconcileChunk leases;
  leases.caller = worker.caller();
  leases.leases.push_back({lease, client, 1, {stored}});
  must<ChunkReconciled>(leases);
  must<ReattachEnded>(EndReattach{worker.caller(), {client}});
  CHECK(directory.find<Lease>(lease) != nullptr);
}

}  // namespace
}  // namespace berth
