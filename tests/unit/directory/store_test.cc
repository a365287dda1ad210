// Reserve, commit, abort: what a writer is granted and when its bytes become readable.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Store : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 8 * kPage);
  SessionId client = join(worker);
};

TEST_CASE_METHOD(Store, "a store is granted, then committed, and only then a hit",
                 "[directory][store]") {
  const Reserved reserved = reserve(worker, client, ns, {1, 2});
  CHECK(codes_text(reserved.codes) == "granted granted");
  CHECK(usage(pool).reserved_bytes == int64_t(2 * kPage));
  CHECK(probe_chunks(client, ns, {1, 2}).miss == MissReason::kBeingWritten);

  must<Committed>(
      commit_command(worker, client, {reserved.first, ReplicaId(reserved.first.value() + 1)}));
  CHECK(probe_chunks(client, ns, {1, 2}).classes.size() == 2);
  CHECK(usage(pool).ready_allocated_bytes == int64_t(2 * kPage));
  CHECK(usage(pool).reserved_bytes == 0);
  CHECK(directory.reservations().empty());
}

TEST_CASE_METHOD(Store, "each item of a reserve is told what became of it", "[directory][store]") {
  store(worker, client, ns, {1});
  const SessionId other = join(worker, "engine-2");
  reserve(worker, other, ns, {2});

  CHECK(codes_text(reserve(worker, client, ns, {1, 2, 3, 3}).codes) ==
        "already_present being_written granted being_written");
}

TEST_CASE_METHOD(Store, "a full pool skips what does not fit and grants the rest",
                 "[directory][store]") {
  store(worker, client, ns, {1, 2, 3, 4, 5, 6, 7});
  CHECK(codes_text(reserve(worker, client, ns, {8, 9}).codes) == "granted skipped_pool_full");
  CHECK(usage(pool).allocated_bytes() == int64_t(8 * kPage));
}

TEST_CASE_METHOD(Store, "what can never fit is told apart from what may fit later",
                 "[directory][store]") {
  Reserve big = reserve_command(worker, client, ns, {1});
  big.sizes = {9 * kPage};
  CHECK(codes_text(must<Reserved>(big).codes) == "skipped_too_large");
}

TEST_CASE_METHOD(Store, "a namespace over its quota is skipped while others go on",
                 "[directory][store]") {
  must<Done>(SetNamespaceQuota{"llama", 2 * kPage});
  CHECK(codes_text(reserve(worker, client, ns, {1, 2, 3}).codes) ==
        "granted granted skipped_namespace_quota");
  CHECK(codes_text(reserve(worker, client, open_namespace("other"), {3}).codes) == "granted");
}

TEST_CASE_METHOD(Store, "repeating an operation repeats its answer and changes nothing",
                 "[directory][operations]") {
  const Reserve command = reserve_command(worker, client, ns, {1, 2});
  const Reserved first = must<Reserved>(command);
  const Reserved again = must<Reserved>(command);
  CHECK(again.first == first.first);
  CHECK(again.codes == first.codes);
  CHECK(usage(pool).reserved_bytes == int64_t(2 * kPage));
}

TEST_CASE_METHOD(Store, "an operation number with other content is refused",
                 "[directory][operations]") {
  Reserve command = reserve_command(worker, client, ns, {1});
  must<Reserved>(command);
  command.id.content_hash = 4711;
  CHECK(refused(command) == Reason::kOperationMismatch);
}

TEST_CASE_METHOD(Store,
                 "a full operation window refuses reserves, lets commits through, and drains by "
                 "the low-water mark",
                 "[directory][operations]") {
  config.operations_max = 2;
  const Reserved one = reserve(worker, client, ns, {1});
  reserve(worker, client, ns, {2});
  CHECK(refused(reserve_command(worker, client, ns, {3})) == Reason::kOperationWindowFull);
  must<Committed>(commit_command(worker, client, {one.first}));

  must<Done>(Heartbeat{worker.caller(), {}, {{client, next_operation - 1}}});
  CHECK(directory.operations().empty());
  CHECK(codes_text(reserve(worker, client, ns, {3}).codes) == "granted");
}

TEST_CASE_METHOD(Store, "an operation at or below the low-water mark is not done again",
                 "[directory][operations]") {
  const Reserve command = reserve_command(worker, client, ns, {1});
  must<Reserved>(command);
  must<Done>(Heartbeat{worker.caller(), {}, {{client, command.id.operation}}});
  CHECK(refused(command) == Reason::kUnknownOperation);
  CHECK(usage(pool).reserved_bytes == int64_t(kPage));
}

TEST_CASE_METHOD(Store,
                 "an abort that names a replica twice gives it back once and leaves the rest",
                 "[directory][store]") {
  const Reserved reserved = reserve(worker, client, ns, {1, 2});
  const PerItem done =
      must<PerItem>(Abort{worker.caller(), client, {reserved.first, reserved.first}});
  CHECK(done.done == std::vector<uint8_t>{1, 0});
  CHECK(usage(pool).reserved_replicas == 1);
  const ReplicaId second(reserved.first.value() + 1);
  CHECK(must<Committed>(commit_command(worker, client, {second})).codes[0] ==
        uint8_t(CommitCode::kCommitted));
}

TEST_CASE_METHOD(Store, "a late commit of a first attempt does not touch the second",
                 "[directory][store][FC-07]") {
  const Reserved first = reserve(worker, client, ns, {1});
  must<PerItem>(Abort{worker.caller(), client, {first.first}});
  const Reserved second = reserve(worker, client, ns, {1});
  REQUIRE(codes_text(second.codes) == "granted");

  CHECK(must<Committed>(commit_command(worker, client, {first.first})).codes[0] ==
        uint8_t(CommitCode::kUnknown));
  CHECK(must<PerItem>(Abort{worker.caller(), client, {first.first}}).done[0] == 0);
  CHECK(probe_chunks(client, ns, {1}).classes.empty());
  CHECK(must<Committed>(commit_command(worker, client, {second.first})).codes[0] ==
        uint8_t(CommitCode::kCommitted));
}

TEST_CASE_METHOD(Store, "of two writers of one key one is granted and the other waits for nothing",
                 "[directory][store][FC-08]") {
  const SessionId other = join(worker, "engine-2");
  const Reserved winner = reserve(worker, client, ns, {1});
  CHECK(codes_text(reserve(worker, other, ns, {1}).codes) == "being_written");
  must<PerItem>(Abort{worker.caller(), client, {winner.first}});
  CHECK(codes_text(reserve(worker, other, ns, {1}).codes) == "granted");
}

TEST_CASE_METHOD(Store, "only the session that reserved may commit or abort",
                 "[directory][store]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  const SessionId other = join(worker, "engine-2");
  CHECK(must<Committed>(commit_command(worker, other, {reserved.first})).codes[0] ==
        uint8_t(CommitCode::kClosed));
  CHECK(must<PerItem>(Abort{worker.caller(), other, {reserved.first}}).done[0] == 0);
  CHECK(replica(reserved.first).state == ReplicaState::kReserved);
}

TEST_CASE_METHOD(Store, "a commit at an offset outside the pool or off a page is refused whole",
                 "[directory][store]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  for (const uint64_t offset : {uint64_t{1}, 8 * kPage, UINT64_MAX - kPage + 1, UINT64_MAX}) {
    Commit commit = commit_command(worker, client, {reserved.first});
    commit.offsets = {offset};
    CHECK(refused(commit) == Reason::kInvalidArgument);
  }
  CHECK(replica(reserved.first).state == ReplicaState::kReserved);
}

TEST_CASE_METHOD(Store, "a silent writer is asked at its deadline, hidden, and stays charged",
                 "[directory][time][FC-01]") {
  const Reserved reserved = reserve(worker, client, ns, {1, 2});
  now = now + config.write_within_default;
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  must<Ticked>(Tick{});
  CHECK(asked(Ask::Kind::kCancel));
  CHECK(replica(reserved.first).state == ReplicaState::kQuarantined);
  CHECK(usage(pool).quarantined_bytes == int64_t(2 * kPage));

  SECTION("another writer can create the same keys meanwhile") {
    CHECK(codes_text(reserve(worker, client, ns, {1, 2}).codes) == "granted granted");
  }
  SECTION("its late commit is refused") {
    CHECK(must<Committed>(commit_command(worker, client, {reserved.first})).codes[0] ==
          uint8_t(CommitCode::kClosed));
  }
  SECTION("its answer frees it at once") {
    must<PerItem>(
        Abort{worker.caller(), client, {reserved.first, ReplicaId(reserved.first.value() + 1)}});
    CHECK(usage(pool).allocated_bytes() == 0);
  }
  SECTION("no amount of time frees it") {
    for (int hour = 0; hour < 100; ++hour) {
      now = now + seconds(3600);
      must<Ticked>(Tick{});
    }
    CHECK(usage(pool).quarantined_bytes == int64_t(2 * kPage));
  }
  SECTION("proof of its death gives it back through the owner") {
    must<Done>(FenceClient{worker.caller(), client});
    drain_jobs();
    CHECK(usage(pool).retiring_bytes == int64_t(2 * kPage));
    must<PerItem>(
        ReclaimAck{worker.caller(), {reserved.first, ReplicaId(reserved.first.value() + 1)}});
    CHECK(usage(pool).allocated_bytes() == 0);
    CHECK(directory.find<Session>(client) == nullptr);
  }
}

TEST_CASE_METHOD(Store, "a deadline that passes while the worker is away starts anew",
                 "[directory][time]") {
  const Reserved reserved = reserve(worker, client, ns, {1});
  must<Done>(LinkDown{worker.session, worker.incarnation});
  now = now + config.write_within_default + config.write_within_default;
  must<Ticked>(Tick{});
  CHECK(replica(reserved.first).state == ReplicaState::kReserved);
  CHECK(directory.find<Reservation>(reserved.first)->deadline == now + config.write_within_default);
}

TEST_CASE_METHOD(Store,
                 "a session with as many open reservations as it may is skipped, not refused",
                 "[directory][store]") {
  config.reservations_max = 1;
  reserve(worker, client, ns, {1});
  CHECK(codes_text(reserve(worker, client, ns, {2}).codes) == "skipped_session_limit");
}

TEST_CASE_METHOD(Store, "malformed reserves name the field and change nothing",
                 "[directory][store]") {
  Reserve command = reserve_command(worker, client, ns, {1, 2, 3});
  SECTION("no items") { command.keys.clear(); }
  SECTION("sizes of another count") { command.sizes = {kPage, kPage}; }
  SECTION("a size of zero") { command.sizes = {0}; }
  SECTION("a size above the bound") { command.sizes = {config.object_bytes_max + 1}; }
  SECTION("a shard that the namespace does not have") { command.keys[0].shard = 1; }
  SECTION("a deadline above the bound") {
    command.write_within = config.write_within_max + milliseconds(1);
  }
  SECTION("a batch past its bound") { config.batch_items_max = 2; }
  SECTION("operation zero") { command.id.operation = 0; }
  CHECK(refused(command) == Reason::kInvalidArgument);
  CHECK(usage(pool).allocated_bytes() == 0);
}

TEST_CASE_METHOD(Store, "a write order names the pools that are written, in its order",
                 "[directory][placement]") {
  ++next_token;
  OpenWorker open = worker_command("w1");
  open.write_order = {"second", "first"};
  const WorkerOpened opened = must<WorkerOpened>(open);
  Worker ordered{opened.session, opened.incarnation};
  reattach(ordered);
  const PoolId first = open_pool(ordered, 2 * kPage, Scope::kHost, "first");
  const PoolId second = open_pool(ordered, 2 * kPage, Scope::kHost, "second");
  open_pool(ordered, 2 * kPage, Scope::kHost, "unlisted");
  const SessionId engine = join(ordered);
  const Reserved reserved = reserve(ordered, engine, ns, {1, 2, 3, 4, 5});
  CHECK(reserved.pools == std::vector<PoolId>{second, second, first, first});
  CHECK(codes_text(reserved.codes) == "granted granted granted granted skipped_pool_full");
}

TEST_CASE_METHOD(Store, "another engine's private copy neither hits nor suppresses a store",
                 "[directory][scope]") {
  Worker private_worker = open_worker("w1");
  const PoolId private_pool = open_pool(private_worker, 8 * kPage, Scope::kProcess);
  const SessionId one = join(private_worker, "engine-1");
  const SessionId two = join(private_worker, "engine-2");
  store(private_worker, one, ns, {1});
  CHECK(directory.find_pool(private_pool)->pool.spec.engine == "engine-1");
  CHECK(probe_chunks(one, ns, {1}).classes.size() == 1);
  CHECK(probe_chunks(two, ns, {1}).miss == MissReason::kNotAccessible);
  CHECK(codes_text(reserve(private_worker, two, ns, {1}).codes) == "skipped_no_pool");
  CHECK(codes_text(reserve(worker, client, ns, {1}).codes) == "granted");
}

TEST_CASE_METHOD(Store, "a silent worker is given nothing more until it is heard again",
                 "[directory][store][time]") {
  now = now + config.heartbeat_deadline;
  must<Ticked>(Tick{});
  CHECK(codes_text(reserve(worker, client, ns, {1}).codes) == "skipped_unavailable");
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  CHECK(codes_text(reserve(worker, client, ns, {1}).codes) == "granted");
}

}  // namespace
}  // namespace berth
