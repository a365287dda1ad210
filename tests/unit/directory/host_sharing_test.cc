// HOST pools read through other workers of the node: who reaches them, what a store finds there,
// and when their memory may go.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct HostSharing : World {
  NamespaceId ns = open_namespace();
  Worker owner = open_worker("w0");
  PoolId pool = open_pool(owner, 64 * kPage);
  SessionId writer = join(owner, "engine-0");
  Worker neighbour = open_worker("w1");
  PoolId neighbours_pool = open_pool(neighbour, 64 * kPage);
  SessionId reader = join(neighbour, "engine-1");

  void pass(const std::string& life = "w0.x1.life") {
    must<Done>(ExportPool{owner.caller(), pool, neighbour.session, life});
  }
  void share(const std::string& life = "w0.x1.life") {
    pass(life);
    must<Done>(ImportPool{neighbour.caller(), pool, life});
  }
  std::string class_of(SessionId session, int chunk) {
    const ProbeAnswer answer = probe_chunks(session, ns, {chunk});
    if (answer.classes.empty()) return std::string(name_of(answer.miss));
    return answer.classes[0] == static_cast<uint8_t>(ChunkClass::kL1Shared) ? "shared" : "local";
  }
  // Until this replica may go, every way of asking for it is tried.
  bool is_reclaim_asked_within(Duration within) {
    const Time until = now + within;
    while (now < until) {
      now = now + milliseconds(1000);
      must<Done>(Heartbeat{owner.caller(), {}, {}});
      must<Ticked>(Tick{});
      if (asked(Ask::Kind::kReclaim)) return true;
    }
    return false;
  }
  const Pool& the_pool() { return *directory.find<Pool>(pool); }
};

TEST_CASE_METHOD(HostSharing,
                 "a HOST pool is readable through a worker that said that it imported it",
                 "[directory][sharing]") {
  store(owner, writer, ns, {1});
  CHECK(class_of(writer, 1) == "local");
  CHECK(class_of(reader, 1) == "not_accessible");
  pass();
  CHECK(needs_sync);
  CHECK(class_of(reader, 1) == "not_accessible");  // on its way
  must<Done>(ImportPool{neighbour.caller(), pool, "w0.x1.life"});
  CHECK(needs_sync);
  CHECK(class_of(reader, 1) == "shared");
  const Acquired acquired = acquire(neighbour, reader, ns, {1});
  REQUIRE(acquired.replicas.size() == 1);
  CHECK(acquired.replicas[0].pool == pool);
  CHECK(acquired.classes[0] == static_cast<uint8_t>(ChunkClass::kL1Shared));
  // Not the other way round: the owner imported nothing.
  store(neighbour, reader, ns, {2});
  CHECK(class_of(writer, 2) == "not_accessible");
}

TEST_CASE_METHOD(HostSharing, "what is READY in an imported pool is not stored again",
                 "[directory][sharing]") {
  share();
  store(owner, writer, ns, {1});
  CHECK(codes_text(reserve(neighbour, reader, ns, {1, 2}).codes) == "already_present granted");
  CHECK(codes_text(reserve(owner, writer, ns, {2}).codes) == "granted");  // it imported nothing
  SECTION("but it is while the owner is away") {
    must<Done>(LinkDown{owner.session, owner.incarnation});
    CHECK(codes_text(reserve(neighbour, reader, ns, {1}).codes) == "granted");
  }
  SECTION("and its own pool is still where a store goes") {
    const Reserved reserved = reserve(neighbour, reader, ns, {7});
    CHECK(reserved.pools == std::vector<PoolId>{neighbours_pool});
  }
}

TEST_CASE_METHOD(
    HostSharing,
    "another owner's private copy neither hits nor suppresses a store, and is never shared",
    "[directory][sharing]") {
  const Worker lonely = open_worker("w2");
  const PoolId own = open_pool(lonely, 64 * kPage, Scope::kProcess);
  const SessionId engine = join(lonely, "engine-1");  // the same engine id as the reader's
  store(lonely, engine, ns, {1});
  CHECK(refused(ExportPool{lonely.caller(), own, neighbour.session, "w2.x.life"}) ==
        Reason::kInvalidArgument);
  CHECK(refused(ImportPool{neighbour.caller(), own, "w2.x.life"}) == Reason::kUnknownPool);
  CHECK(class_of(reader, 1) == "not_accessible");
  CHECK(codes_text(reserve(neighbour, reader, ns, {1}).codes) == "granted");
}

TEST_CASE_METHOD(HostSharing, "only the owner exports, and only to another live worker of its node",
                 "[directory][sharing]") {
  const Worker far = open_worker("w9", "host-b");
  CHECK(refused(ExportPool{owner.caller(), pool, far.session, "a"}) == Reason::kUnknownSession);
  CHECK(refused(ExportPool{owner.caller(), pool, owner.session, "a"}) == Reason::kUnknownSession);
  CHECK(refused(ExportPool{owner.caller(), pool, reader, "a"}) == Reason::kUnknownSession);
  CHECK(refused(ExportPool{neighbour.caller(), pool, neighbour.session, "a"}) ==
        Reason::kPermissionDenied);
  CHECK(refused(ExportPool{owner.caller(), PoolId(77), neighbour.session, "a"}) ==
        Reason::kUnknownPool);
  pass("a");
  const Worker third = open_worker("w2");
  CHECK(refused(ImportPool{third.caller(), pool, "a"}) == Reason::kUnknownPool);
  CHECK(refused(ImportPool{neighbour.caller(), pool, "b"}) == Reason::kUnknownPool);
  CHECK(refused(EndExports{neighbour.caller(), pool, {"a"}}) == Reason::kPermissionDenied);
}

TEST_CASE_METHOD(HostSharing,
                 "exports of a pool and imports of a worker are bounded, repeats are free",
                 "[directory][sharing]") {
  config.importers_max = 2;
  pass("a");
  pass("a");
  CHECK(the_pool().exports.size() == 1);
  pass("b");
  CHECK(refused(ExportPool{owner.caller(), pool, neighbour.session, "c"}) == Reason::kLimitReached);
  must<Done>(EndExports{owner.caller(), pool, {"a", "never"}});
  pass("c");
  config.importers_max = 64;
  config.imports_max = 2;
  CHECK(refused(ExportPool{owner.caller(), pool, neighbour.session, "d"}) == Reason::kLimitReached);
}

TEST_CASE_METHOD(HostSharing, "a lease of a neighbour's engine keeps the owner from reclaiming",
                 "[directory][sharing][lease]") {
  share();
  const ReplicaId stored = store(owner, writer, ns, {1}).front();
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  must<PerItem>(Evict{{stored}});
  CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
  must<PerItem>(Release{neighbour.caller(), reader, {lease}});
  CHECK(asked(Ask::Kind::kReclaim));
  must<PerItem>(ReclaimAck{owner.caller(), {stored}});
  CHECK(directory.find<Replica>(stored) == nullptr);
}

TEST_CASE_METHOD(HostSharing,
                 "after a restart nothing is reclaimed until every importer stated its leases",
                 "[directory][sharing][reattach]") {
  share();
  const ReplicaId stored = store(owner, writer, ns, {1}).front();
  const LedgerRow held = row(stored, 1, replica(stored).offset, LedgerState::kSealed);
  // The power cut takes the lease.
  const std::vector<Mutation> before = durable_records();
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  restart_from(before);
  REQUIRE(directory.find<Lease>(lease) == nullptr);
  reattach(owner, pool, {held}, {}, {writer});
  must<PerItem>(Evict{{stored}});
  CHECK_FALSE(asked(Ask::Kind::kReclaim));
  CHECK_FALSE(is_reclaim_asked_within(seconds(20)));

  SECTION("it re-attaches and holds the lease") {
    reattach(neighbour, PoolId(), {}, {{lease, reader, 1, {stored}}}, {reader});
    CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
    must<PerItem>(Release{neighbour.caller(), reader, {lease}});
    CHECK(asked(Ask::Kind::kReclaim));
  }
  SECTION("it re-attaches and holds none") {
    reattach(neighbour, PoolId(), {}, {}, {reader});
    CHECK(is_reclaim_asked_within(seconds(20)));
  }
  SECTION("its Link breaks afterwards") {
    reattach(neighbour, PoolId(), {}, {}, {reader});
    must<Done>(LinkDown{neighbour.session, neighbour.incarnation});
    CHECK(is_reclaim_asked_within(seconds(20)));
  }
  SECTION("it is dead, and an engine of it may read until the owner finds the life lock free") {
    must<WorkerOpened>(successor_command("w1"));
    CHECK(the_pool().exports[0].unsure);
    CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
    restart();  // kept in mind across another restart
    reattach(owner, pool, {held}, {}, {writer});
    CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
    must<Done>(EndExports{owner.caller(), pool, {"w0.x1.life"}});
    CHECK(is_reclaim_asked_within(seconds(20)));
  }
}

TEST_CASE_METHOD(HostSharing, "a re-attach judges with the leases of importers that came first",
                 "[directory][sharing][reattach]") {
  share();
  const std::vector<Mutation> before = durable_records();
  const ReplicaId stored = store(owner, writer, ns, {1}).front();
  const uint64_t offset = replica(stored).offset;
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  restart_from(before);  // the replica and the lease are gone
  SECTION("it is adopted and protected") {
    reattach(neighbour, PoolId(), {}, {{lease, reader, 1, {stored}}}, {reader});
    CHECK(directory.lease_count(stored) == 1);
    const auto verdicts =
        reattach(owner, pool, {row(stored, 1, offset, LedgerState::kSealed)}, {}, {writer});
    CHECK(verdicts == std::vector{LedgerVerdict::kAdopted});
    must<PerItem>(Evict{{stored}});
    CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
    must<PerItem>(Release{neighbour.caller(), reader, {lease}});
    CHECK(asked(Ask::Kind::kReclaim));
  }
  SECTION("a commit that was not answered is kept aside until no reader is possible") {
    const auto verdicts =
        reattach(owner, pool, {row(stored, 1, offset, LedgerState::kWritten)}, {}, {writer});
    CHECK(verdicts == std::vector{LedgerVerdict::kQuarantine});
    CHECK(class_of(writer, 1) == "retiring");
    CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
    reattach(neighbour, PoolId(), {}, {{lease, reader, 1, {stored}}}, {reader});
    CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
    must<PerItem>(Release{neighbour.caller(), reader, {lease}});
    CHECK(asked(Ask::Kind::kReclaim));
  }
  SECTION("once the importers stated that they hold nothing, it is freed as ever") {
    reattach(neighbour, PoolId(), {}, {}, {reader});
    const auto verdicts =
        reattach(owner, pool, {row(stored, 1, offset, LedgerState::kWritten)}, {}, {writer});
    CHECK(verdicts == std::vector{LedgerVerdict::kFree});
  }
}

TEST_CASE_METHOD(HostSharing, "the memory of a dead owner is charged until its importers let go",
                 "[directory][sharing]") {
  share();
  store(owner, writer, ns, {1});
  const WorkerOpened opened = must<WorkerOpened>(successor_command("w0"));
  CHECK(asked(Ask::Kind::kDropImport));
  REQUIRE(opened.orphan_pools.size() == 1);
  CHECK(opened.orphan_pools[0].importers ==
        std::vector<std::string>{"engine-0.life", "w0.x1.life"});
  CHECK(class_of(reader, 1) == "not_present");
  CHECK(refused(ImportPool{neighbour.caller(), pool, "w0.x1.life"}) == Reason::kUnknownPool);
  drain_jobs();
  REQUIRE(directory.find<Pool>(pool) != nullptr);
  now = now + seconds(20);
  must<Done>(Heartbeat{neighbour.caller(), {}, {}});
  must<Ticked>(Tick{});
  CHECK(asked(Ask::Kind::kDropImport));  // until the locks are free
  must<Done>(ReleaseOrphans{{opened.session, opened.incarnation}, {pool}});
  CHECK(directory.find<Pool>(pool) == nullptr);
}

TEST_CASE_METHOD(HostSharing, "the death of an importer changes nothing of the owner's pool",
                 "[directory][sharing]") {
  share();
  const ReplicaId stored = store(owner, writer, ns, {1}).front();
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  const WorkerOpened opened = must<WorkerOpened>(successor_command("w1"));
  CHECK(class_of(writer, 1) == "local");
  REQUIRE(the_pool().exports.size() == 1);
  CHECK_FALSE(the_pool().exports[0].importer.valid());
  CHECK_FALSE(the_pool().exports[0].unsure);
  must<PerItem>(Evict{{stored}});
  CHECK_FALSE(is_reclaim_asked_within(seconds(20)));  // its engine may read: proof ends the lease
  REQUIRE(directory.find<Lease>(lease) != nullptr);
  Worker successor{opened.session, opened.incarnation};
  reattach(successor);
  must<Done>(FenceClient{successor.caller(), reader});
  drain_jobs();
  CHECK(is_reclaim_asked_within(seconds(20)));
}

TEST_CASE_METHOD(HostSharing,
                 "a lease of an engine that came over from a dead importer outlives re-attaches",
                 "[directory][sharing]") {
  share();
  const ReplicaId stored = store(owner, writer, ns, {1}).front();
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  const WorkerOpened opened = must<WorkerOpened>(successor_command("w1"));
  Worker successor{opened.session, opened.incarnation};
  reattach(successor);
  must<ClientOpened>(resume_command(successor, reader, "second.life"));
  reattach(successor);  // its ledger does not have the lease
  must<PerItem>(Evict{{stored}});
  CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
  REQUIRE(directory.find<Lease>(lease) != nullptr);
  must<PerItem>(Release{successor.caller(), reader, {lease}});
  CHECK(asked(Ask::Kind::kReclaim));
}

TEST_CASE_METHOD(HostSharing,
                 "a close is refused while the pool is exported, and names the importers",
                 "[directory][sharing]") {
  share();
  const Result<Outcome> outcome = run(ClosePool{owner.caller(), pool});
  REQUIRE_FALSE(outcome.has_value());
  CHECK(outcome.error().reason == Reason::kStillMapped);
  CHECK_THAT(outcome.error().message, Catch::Contains("exported to w1"));
  must<Draining>(Drain{pool, SessionId()});
  CHECK(asked(Ask::Kind::kDropImport));
  CHECK(refused(ExportPool{owner.caller(), pool, neighbour.session, "later"}) ==
        Reason::kUnknownPool);
  CHECK(refused(ClosePool{owner.caller(), pool}) == Reason::kStillMapped);
  must<Done>(EndExports{owner.caller(), pool, {"w0.x1.life"}});
  must<Done>(EndExports{owner.caller(), pool, {"w0.x1.life"}});  // a repeat
  must<PoolClosing>(ClosePool{owner.caller(), pool});
}

TEST_CASE_METHOD(HostSharing, "a drain hides the pool from neighbours, who are asked to let go",
                 "[directory][sharing][drain]") {
  share();
  const ReplicaId stored = store(owner, writer, ns, {1, 2}).front();
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  must<Draining>(Drain{pool, SessionId()});
  CHECK(asked(Ask::Kind::kDropImport));
  CHECK(class_of(reader, 1) == "retiring");
  CHECK(codes_text(reserve(neighbour, reader, ns, {2}).codes) == "granted");  // there is none now
  must<JobRan>(RunJob{directory.jobs().begin()->first});
  CHECK(directory.find<Replica>(stored)->state == ReplicaState::kRetiring);
  CHECK(refused(ClosePool{owner.caller(), pool}) == Reason::kStillMapped);
  must<PerItem>(Release{neighbour.caller(), reader, {lease}});
  CHECK(asked(Ask::Kind::kReclaim));
  must<Done>(EndExports{owner.caller(), pool, {"w0.x1.life"}});
  must<PoolClosing>(ClosePool{owner.caller(), pool});
}

TEST_CASE_METHOD(HostSharing, "an evicted namespace is hidden in imported pools as well",
                 "[directory][sharing][evict]") {
  share();
  const ReplicaId stored = store(owner, writer, ns, {1}).front();
  const LeaseId lease = acquire(neighbour, reader, ns, {1}).lease;
  must<JobStarted>(EvictNamespace{"llama"});
  CHECK(class_of(reader, 1) == "retiring");
  CHECK(codes_text(reserve(neighbour, reader, ns, {1}).codes) == "granted");
  drain_jobs();
  CHECK_FALSE(is_reclaim_asked_within(seconds(20)));
  must<PerItem>(Release{neighbour.caller(), reader, {lease}});
  must<PerItem>(ReclaimAck{owner.caller(), {stored}});
  CHECK(directory.find<Replica>(stored) == nullptr);
}

TEST_CASE_METHOD(HostSharing, "another boot of the node ends importers with everything else",
                 "[directory][sharing]") {
  share();
  OpenWorker next = worker_command("w0");
  next.boot_id = {4, 4};
  must<WorkerOpened>(next);
  drain_jobs();
  CHECK(directory.find<Pool>(pool) == nullptr);
  CHECK(directory.find<Pool>(neighbours_pool) == nullptr);
}

}  // namespace
}  // namespace berth
