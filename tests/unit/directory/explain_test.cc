// Explain is Probe with reasons: the same verdict in every state that a copy can be in, and a
// sentence for each copy that cannot be read.
#include "server/directory/explain.h"

#include "server/directory/readers.h"
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

using Catch::Contains;

struct Explained : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 64 * kPage);
  SessionId client = join(worker);
  Worker stranger = open_worker("w1", "host-b");
  SessionId other = join(stranger, "engine-2");
  std::vector<ReplicaId> stored = store(worker, client, ns, {1, 2});

  Explanation explanation(int chunk, SessionId session) const {
    const Reader reader = reader_of(directory, session).value();
    return explain(directory, *directory.find<Namespace>(ns), digest(chunk), reader);
  }
  // The explanation, after it was held against Probe and against its own copies.
  Explanation agreed(int chunk, SessionId session) const {
    const Explanation told = explanation(chunk, session);
    const ProbeAnswer probed = probe_chunks(session, ns, {chunk});
    CHECK(told.is_hit == !probed.classes.empty());
    CHECK(told.miss == probed.miss);
    // One shard and part: the chunk is a hit when one of its copies is readable.
    bool is_readable = false;
    for (const ExplainedCopy& copy : told.copies) {
      is_readable |= copy.obstacle == MissReason::kNone;
      CHECK(copy.advice.empty() == (copy.obstacle == MissReason::kNone));
    }
    CHECK(told.is_hit == is_readable);
    return told;
  }
  // The advice on the one copy of chunk 1.
  std::string advice(SessionId session) const {
    const Explanation told = agreed(1, session);
    REQUIRE(told.copies.size() == 1);
    return told.copies[0].advice;
  }
};

TEST_CASE_METHOD(
    Explained, "a chunk that can be read is a hit without advice, one that is unknown has no copy",
    "[directory][explain]") {
  CHECK(agreed(1, client).is_hit);
  CHECK(agreed(1, worker.session).is_hit);
  const Explanation unknown = agreed(7, client);
  CHECK(unknown.miss == MissReason::kNotPresent);
  CHECK(unknown.copies.empty());
}

TEST_CASE_METHOD(
    Explained,
    "a copy in another worker's pool is named out of reach with pool, worker and requester",
    "[directory][explain]") {
  CHECK_THAT(advice(other), Contains("\"cpu\"") && Contains("\"w0\"") && Contains("\"host-a\"") &&
                                Contains("\"engine-2\"") && Contains("\"w1\""));
}

TEST_CASE_METHOD(Explained,
                 "a copy in a neighbour's pool is a hit once it is imported, and says so before",
                 "[directory][explain][sharing]") {
  CHECK_THAT(advice(other), !Contains("imported"));  // on another node it never will be
  const Worker neighbour = open_worker("w2");
  const SessionId reader = join(neighbour, "engine-3");
  CHECK_THAT(advice(reader),
             Contains("\"w2\"") && Contains("has not imported it") && Contains("share_host_pools"));
  must<Done>(ExportPool{worker.caller(), pool, neighbour.session, "a"});
  CHECK_THAT(advice(reader), Contains("has not imported it"));
  must<Done>(ImportPool{neighbour.caller(), pool, "a"});
  CHECK(agreed(1, reader).is_hit);
  // Evicted, it is kept by a lease of the neighbour's engine like by any other.
  acquire(neighbour, reader, ns, {1});
  must<PerItem>(MakeRoom{pool, stored, Why::kMadeRoom, JobId()});
  CHECK(agreed(1, reader).is_hit);
  must<PerItem>(Evict{{stored[0]}});
  CHECK_THAT(advice(reader), Contains("An operator evicted it") && Contains("1 lease keeps"));
}

TEST_CASE_METHOD(Explained, "a private copy names the engine that it is private to",
                 "[directory][explain]") {
  const Worker shy = open_worker("w2", "host-c");
  open_pool(shy, 64 * kPage, Scope::kProcess, "private");
  const SessionId owner = join(shy, "engine-3");
  const SessionId neighbour = join(shy, "engine-4");
  store(shy, owner, ns, {9});
  CHECK(agreed(9, owner).is_hit);
  CHECK_THAT(agreed(9, neighbour).copies[0].advice,
             Contains("private to engine \"engine-3\"") && Contains("\"engine-4\""));
}

TEST_CASE_METHOD(Explained, "a copy that is being written names its writer",
                 "[directory][explain]") {
  reserve(worker, client, ns, {5});
  const Explanation told = agreed(5, client);
  CHECK(told.miss == MissReason::kBeingWritten);
  CHECK_THAT(told.copies[0].advice, Contains("engine \"engine-1\""));
}

TEST_CASE_METHOD(Explained, "a silent and an absent worker are told apart, and nothing is freed",
                 "[directory][explain]") {
  now = now + config.heartbeat_deadline + seconds(1);
  must<Ticked>(Tick{});
  CHECK(agreed(1, client).miss == MissReason::kOwnerSilent);
  CHECK_THAT(advice(client), Contains("missed its heartbeats"));
  must<Done>(LinkDown{worker.session, worker.incarnation});
  CHECK(agreed(1, client).miss == MissReason::kUnverified);
  CHECK_THAT(advice(client), Contains("\"w0\" is not attached"));
}

TEST_CASE_METHOD(Explained, "an evicted copy says who evicted it, and whose lease still keeps it",
                 "[directory][explain]") {
  acquire(worker, client, ns, {1});
  must<PerItem>(Evict{{stored[0]}});
  CHECK_THAT(advice(client), Contains("An operator evicted it") && Contains("1 lease keeps"));
  must<PerItem>(MakeRoom{pool, {stored[1]}, Why::kMadeRoom, JobId()});
  CHECK_THAT(agreed(2, client).copies[0].advice,
             Contains("make room in its pool") && Contains("not yet acknowledged"));
}

TEST_CASE_METHOD(Explained, "a drain and an evicted namespace explain copies that are still READY",
                 "[directory][explain]") {
  must<PerItem>(PinChunks{"llama", {digest(1)}, PinKind::kHard, Duration{}});
  must<Draining>(Drain{pool, SessionId()});
  CHECK(replica(stored[0]).state == ReplicaState::kReady);
  CHECK_THAT(advice(client), Contains("drains its pool") && Contains("its pin does not change"));
  must<Draining>(Undrain{pool, SessionId()});
  CHECK(agreed(1, client).is_hit);

  must<JobStarted>(EvictNamespace{"llama"});
  CHECK(replica(stored[0]).state == ReplicaState::kReady);
  CHECK_THAT(advice(client), Contains("evicted its namespace"));
  drain_jobs();
  CHECK_THAT(advice(client), Contains("evicted its namespace"));
}

TEST_CASE_METHOD(Explained, "an overdue write and a ledger that disagrees are told apart",
                 "[directory][explain]") {
  reserve(worker, client, ns, {5});
  now = now + config.write_within_default + seconds(1);
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  must<Ticked>(Tick{});
  const Explanation overdue = agreed(5, client);
  CHECK(overdue.miss == MissReason::kQuarantined);
  CHECK_THAT(overdue.copies[0].advice, Contains("write is overdue"));
  reattach(worker, pool, {row(stored[0], 1, 40 * kPage, LedgerState::kSealed)});
  CHECK(agreed(1, client).miss == MissReason::kQuarantined);
  CHECK_THAT(advice(client), Contains("name different bytes"));
}

TEST_CASE("a chunk that lacks a part is a miss although every copy of it can be read",
          "[directory][explain]") {
  World world;
  const NamespaceId ns = world.open_namespace("wide", 2, 1);
  const World::Worker worker = world.open_worker();
  world.open_pool(worker);
  const SessionId client = world.join(worker);
  world.store(worker, client, ns, {1});  // shard 0 only
  const Explanation told = explain(world.directory, *world.directory.find<Namespace>(ns),
                                   World::digest(1), Reader{worker.session, "engine-1"});
  CHECK_FALSE(told.is_hit);
  CHECK(told.miss == MissReason::kIncomplete);
  REQUIRE(told.copies.size() == 1);
  CHECK(told.copies[0].obstacle == MissReason::kNone);
}

TEST_CASE_METHOD(Explained, "of several copies each one is explained for itself",
                 "[directory][explain]") {
  open_pool(stranger, 64 * kPage, Scope::kHost, "far");
  store(stranger, other, ns, {1});
  for (const SessionId session : {client, other}) {
    const Explanation told = agreed(1, session);
    CHECK(told.is_hit);
    REQUIRE(told.copies.size() == 2);
    CHECK((told.copies[0].obstacle == MissReason::kNone) !=
          (told.copies[1].obstacle == MissReason::kNone));
  }
}

}  // namespace
}  // namespace berth
