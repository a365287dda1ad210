// Re-attach as a table: what the directory holds, what the ledger holds, what becomes of it.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Reattach : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 64 * kPage);
  SessionId client = join(worker);

  uint64_t offset_of(ReplicaId id) const { return directory.find<Replica>(id)->offset; }
};

TEST_CASE_METHOD(
    Reattach, "after a restart everything is hidden until its owner re-attached, then a hit again",
    "[directory][reattach]") {
  const std::vector<ReplicaId> stored = store(worker, client, ns, {1, 2});
  restart();
  CHECK(probe_chunks(client, ns, {1}).miss == MissReason::kUnverified);
  CHECK(refused(reserve_command(worker, client, ns, {5})) == Reason::kReattaching);
  const auto verdicts = reattach(worker, pool,
                                 {row(stored[0], 1, offset_of(stored[0]), LedgerState::kSealed),
                                  row(stored[1], 2, offset_of(stored[1]), LedgerState::kSealed)},
                                 {}, {client});
  CHECK(verdicts == std::vector<LedgerVerdict>{LedgerVerdict::kKeep, LedgerVerdict::kKeep});
  CHECK(probe_chunks(client, ns, {1, 2}).classes.size() == 2);
}

TEST_CASE_METHOD(Reattach, "what the ledger lacks is dropped at the end marker and not before",
                 "[directory][reattach]") {
  const std::vector<ReplicaId> stored = store(worker, client, ns, {1, 2});
  const Reserve open = reserve_command(worker, client, ns, {3});
  must<Reserved>(open);
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {3, 3};
  worker.incarnation = must<ReattachBegun>(begin).incarnation;
  ReconcileChunk chunk{worker.caller(),
                       false,
                       pool,
                       directory.namespaces().begin()->second.fingerprint,
                       {row(stored[0], 1, offset_of(stored[0]), LedgerState::kSealed)},
                       {}};
  must<ChunkReconciled>(chunk);
  CHECK(directory.replicas().size() == 3);
  CHECK(must<ReattachEnded>(EndReattach{worker.caller(), {client}}).dropped == 2);
  CHECK(directory.replicas().size() == 1);
  must<Done>(LinkUp{worker.caller()});
  Reserve repeat = open;
  repeat.id.caller = worker.caller();
  CHECK(codes_text(must<Reserved>(repeat).codes) == "skipped_dropped");
}

TEST_CASE_METHOD(
    Reattach,
    "pages that were given anew before a power cut are adopted before the old are dropped",
    "[directory][reattach]") {
  // The owner reclaimed the old one and sealed another in its place; the cut took all word of it.
  const std::vector<ReplicaId> old = store(worker, client, ns, {1});
  const uint64_t offset = offset_of(old[0]);
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {3, 3};
  worker.incarnation = must<ReattachBegun>(begin).incarnation;
  const ReplicaId anew(old[0].value() + 50);
  const ReconcileChunk chunk{worker.caller(),
                             false,
                             pool,
                             directory.namespaces().begin()->second.fingerprint,
                             {row(anew, 2, offset, LedgerState::kSealed)},
                             {}};
  CHECK(must<ChunkReconciled>(chunk).verdicts.front() == LedgerVerdict::kAdopted);
  restart();  // what is on the disk now must be a directory that can be
  const auto verdicts = reattach(worker, pool, {row(anew, 2, offset, LedgerState::kSealed)});
  CHECK(verdicts.front() == LedgerVerdict::kKeep);
  CHECK(directory.find<Replica>(old[0]) == nullptr);
  CHECK(directory.find<Replica>(anew)->state == ReplicaState::kReady);
}

TEST_CASE_METHOD(Reattach, "a Link does not open before the re-attach is finished",
                 "[directory][reattach]") {
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {3, 3};
  worker.incarnation = must<ReattachBegun>(begin).incarnation;
  CHECK(refused(LinkUp{worker.caller()}) == Reason::kReattaching);
  must<ReattachEnded>(EndReattach{worker.caller(), {}});
  must<Done>(LinkUp{worker.caller()});
}

TEST_CASE_METHOD(Reattach,
                 "an open reservation that the ledger holds stays open, and its commit lands",
                 "[directory][reattach]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  restart();
  CHECK(reattach(worker, pool, {row(reserved.first, 1, 0, LedgerState::kWritten)}, {},
                 {client})[0] == LedgerVerdict::kKeep);
  CHECK(must<Committed>(commit_command(worker, client, {reserved.first})).codes[0] ==
        uint8_t(CommitCode::kCommitted));
}

TEST_CASE_METHOD(Reattach, "a sealed replica whose commit a power cut took is READY again",
                 "[directory][reattach]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  CHECK(reattach(worker, pool, {row(reserved.first, 1, kPage, LedgerState::kSealed)}, {},
                 {client})[0] == LedgerVerdict::kAdopted);
  CHECK(replica(reserved.first).state == ReplicaState::kReady);
  CHECK(replica(reserved.first).offset == kPage);
}

TEST_CASE_METHOD(
    Reattach,
    "a sealed replica that the directory never heard of is adopted, an unsealed one is not",
    "[directory][reattach]") {
  const ReplicaId lost(12345);
  CHECK(reattach(worker, pool,
                 {row(lost, 1, 0, LedgerState::kSealed),
                  row(ReplicaId(12346), 2, kPage, LedgerState::kWritten),
                  row(ReplicaId(12347), 3, 2 * kPage, LedgerState::kWriting)},
                 {}, {client}) == std::vector<LedgerVerdict>{LedgerVerdict::kAdopted,
                                                             LedgerVerdict::kFree,
                                                             LedgerVerdict::kFree});
  CHECK(probe_chunks(client, ns, {1}).classes.size() == 1);
  CHECK(directory.replicas().size() == 1);
}

TEST_CASE_METHOD(Reattach, "what is adopted past a quota is charged and then drained",
                 "[directory][reattach]") {
  must<Done>(SetNamespaceQuota{"llama", kPage});
  store(worker, client, ns, {1});
  const ReplicaId have = acquire(worker, client, ns, {1}).replicas[0].id;
  const auto verdicts = reattach(worker, pool,
                                 {row(have, 1, offset_of(have), LedgerState::kSealed),
                                  row(ReplicaId(5), 2, kPage, LedgerState::kSealed),
                                  row(ReplicaId(6), 3, 2 * kPage, LedgerState::kSealed)},
                                 {}, {client});
  CHECK(verdicts[2] == LedgerVerdict::kReclaim);
  CHECK(replica(ReplicaId(6)).why == Why::kOverQuota);
  CHECK(usage(pool).allocated_bytes() == int64_t(3 * kPage));
}

TEST_CASE_METHOD(Reattach,
                 "where directory and ledger disagree both are quarantined and never readable",
                 "[directory][reattach]") {
  const ReplicaId id = store(worker, client, ns, {1})[0];
  LedgerRow wrong = row(id, 1, offset_of(id), LedgerState::kSealed);
  SECTION("another key") { wrong.digest = digest(2); }
  SECTION("another offset") { wrong.offset += kPage; }
  SECTION("another size") { wrong.size_bytes += 1; }
  SECTION("not finished") { wrong.state = LedgerState::kWriting; }
  CHECK(reattach(worker, pool, {wrong}, {}, {client})[0] == LedgerVerdict::kQuarantine);
  CHECK(replica(id).state == ReplicaState::kQuarantined);
  CHECK(probe_chunks(client, ns, {1}).miss == MissReason::kQuarantined);
  CHECK(usage(pool).quarantined_bytes == int64_t(kPage));
}

TEST_CASE_METHOD(Reattach, "a reclaim whose ACK was lost is freed by the ledger's word",
                 "[directory][reattach]") {
  const ReplicaId id = store(worker, client, ns, {1})[0];
  SECTION("still retiring here") { must<PerItem>(Evict{{id}}); }
  SECTION("READY here, because a power cut took the retirement") {}
  CHECK(reattach(worker, pool, {row(id, 1, 0, LedgerState::kReclaimed)}, {}, {client})[0] ==
        LedgerVerdict::kFree);
  CHECK(usage(pool).allocated_bytes() == 0);
}

TEST_CASE_METHOD(Reattach, "a retiring replica is reclaimed unless a reader still holds it",
                 "[directory][reattach]") {
  const std::vector<ReplicaId> ids = store(worker, client, ns, {1, 2});
  const Acquired held = acquire(worker, client, ns, {1});
  must<PerItem>(Evict{ids});
  const auto verdicts = reattach(worker, pool,
                                 {row(ids[0], 1, offset_of(ids[0]), LedgerState::kSealed),
                                  row(ids[1], 2, offset_of(ids[1]), LedgerState::kSealed)},
                                 {{held.lease, client, 1, {ids[0]}}}, {client});
  CHECK(verdicts == std::vector<LedgerVerdict>{LedgerVerdict::kKeep, LedgerVerdict::kReclaim});
  CHECK(directory.find<Lease>(held.lease) != nullptr);
}

TEST_CASE_METHOD(
    Reattach, "a lease that no span is out under ends with the re-attach, a lost one is made again",
    "[directory][reattach]") {
  const ReplicaId id = store(worker, client, ns, {1})[0];
  const Acquired dropped = acquire(worker, client, ns, {1});
  const LeaseId lost(777);
  reattach(worker, pool, {row(id, 1, offset_of(id), LedgerState::kSealed)},
           {{lost, client, 99, {id}}}, {client});
  CHECK(directory.find<Lease>(dropped.lease) == nullptr);
  REQUIRE(directory.find<Lease>(lost) != nullptr);
  CHECK(directory.lease_count(id) == 1);
}

TEST_CASE_METHOD(Reattach, "a ledger of another store means nothing here",
                 "[directory][reattach]") {
  const ReplicaId id = store(worker, client, ns, {1})[0];
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {3, 3};
  begin.store_id_seen = {99, 99};
  const ReattachBegun begun = must<ReattachBegun>(begin);
  CHECK(begun.foreign_store);
  worker.incarnation = begun.incarnation;
  ReconcileChunk chunk{worker.caller(), true, pool, {}, {row(id, 1, 0, LedgerState::kSealed)}, {}};
  CHECK(must<ChunkReconciled>(chunk).verdicts[0] == LedgerVerdict::kFree);
}

TEST_CASE_METHOD(Reattach, "a worker learns at its Link that a client it names was fenced here",
                 "[directory][reattach]") {
  must<Done>(FenceClient{worker.caller(), client});
  drain_jobs();
  reattach(worker, pool, {}, {}, {client});
  REQUIRE(asked(Ask::Kind::kClientFenced));
  CHECK(asks[0].client == client);
}

TEST_CASE_METHOD(Reattach, "dropping what is missing goes in slices", "[directory][reattach]") {
  config.slice_records = 2;
  store(worker, client, ns, {1, 2, 3, 4, 5});
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {3, 3};
  worker.incarnation = must<ReattachBegun>(begin).incarnation;
  int slices = 1;
  while (must<ReattachEnded>(EndReattach{worker.caller(), {client}}).more) ++slices;
  CHECK(slices == 3);
  CHECK(directory.replicas().size() == 0);
}

TEST_CASE_METHOD(Reattach, "a re-attach under another boot id is refused",
                 "[directory][reattach]") {
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = {8, 8};
  CHECK(refused(begin) == Reason::kSessionFenced);
}

TEST_CASE_METHOD(Reattach,
                 "what was quarantined for a mismatch leaves by eviction and its owner's ACK",
                 "[directory][reattach]") {
  const ReplicaId id = store(worker, client, ns, {1})[0];
  LedgerRow wrong = row(id, 1, offset_of(id) + kPage, LedgerState::kSealed);
  reattach(worker, pool, {wrong}, {}, {client});
  REQUIRE(replica(id).state == ReplicaState::kQuarantined);
  CHECK(must<PerItem>(Evict{{id}}).done[0] == 1);
  CHECK(asked(Ask::Kind::kReclaim));
  must<PerItem>(ReclaimAck{worker.caller(), {id}});
  CHECK(usage(pool).allocated_bytes() == 0);
}

}  // namespace
}  // namespace berth
