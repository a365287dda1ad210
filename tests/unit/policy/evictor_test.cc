// The evictor over a real directory: what is over its high watermark is emptied to the low one, a
// slice at a time, and nothing that somebody reads or keeps is chosen.
#include "server/policy/evictor.h"

#include "tests/unit/directory/world.h"

namespace berth {
namespace {

using policy::Evictor;
using policy::EvictorConfig;

// One worker, one engine, one pool of `pages` pages, and an evictor beside them.
struct Full : World {
  Evictor driver;
  Worker worker;
  PoolId pool;
  NamespaceId ns;
  SessionId engine;

  explicit Full(uint64_t pages = 100, EvictorConfig settings = {}) : driver(settings, config) {
    evictor = &driver;
    worker = open_worker();
    pool = open_pool(worker, pages * kPage);
    ns = open_namespace();
    engine = join(worker);
  }

  // Runs slices until there is nothing to do, acknowledging reclaims; answers how many.
  int make_room() {
    int slices = 0;
    while (const std::optional<MakeRoom> slice = driver.next(directory, now)) {
      REQUIRE(++slices < 1000);
      const PerItem outcome = must<PerItem>(*slice);
      driver.answered(directory, *slice, outcome, now);
      acknowledge();
    }
    return slices;
  }
  void acknowledge() {
    for (const Ask& ask : std::vector<Ask>(asks))
      if (ask.kind == Ask::Kind::kReclaim) must<PerItem>(ReclaimAck{worker.caller(), ask.replicas});
  }
  std::vector<ReplicaId> store_range(int from, int to) {
    std::vector<int> chunks;
    for (int chunk = from; chunk < to; ++chunk) chunks.push_back(chunk);
    return store_at_free(chunks);
  }
  // Offsets of what was freed are used again, as a worker's extent map does.
  std::vector<ReplicaId> store_at_free(const std::vector<int>& chunks) {
    const Reserved reserved = reserve(worker, engine, ns, chunks);
    std::set<uint64_t> taken;
    for (uint32_t slot = 0; slot < directory.replicas().slot_limit(); ++slot)
      if (const Replica& r = directory.replicas().at(slot).replica; r.id.valid())
        if (r.state != ReplicaState::kReserved) taken.insert(r.offset);
    Commit commit = commit_command(worker, engine, {});
    uint64_t offset = 0;
    for (size_t i = 0; i < reserved.pools.size(); ++i) {
      while (taken.contains(offset)) offset += kPage;
      taken.insert(offset);
      commit.replicas.push_back(ReplicaId(reserved.first.value() + i));
      commit.offsets.push_back(offset);
    }
    must<Committed>(commit);
    return commit.replicas;
  }
  bool is_ready(ReplicaId id) const {
    const Replica* found = directory.find<Replica>(id);
    return found && found->state == ReplicaState::kReady;
  }
  int64_t ready() const { return usage(pool).ready_replicas; }
};

TEST_CASE("a pool at its high watermark is left alone, and past it emptied to the low one",
          "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 90);
  CHECK(world.make_room() == 0);
  CHECK(world.ready() == 90);
  world.store_range(90, 91);
  CHECK(world.make_room() > 0);
  CHECK(world.ready() == 80);
  CHECK(world.make_room() == 0);
}

TEST_CASE("a slice retires at most as many as it may, and the rest follows in others",
          "[policy][evictor]") {
  Full world(100, {.slice_replicas = 4});
  world.store_range(0, 95);
  CHECK(world.make_room() == 4);  // 15 replicas, four at a time
  CHECK(world.ready() == 80);
  CHECK(world.driver.stats().slice_replicas_max == 4);
}

TEST_CASE("what retires already counts as room, so slow acknowledgements evict nothing more",
          "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 95);
  const auto slice = world.driver.next(world.directory, world.now);
  REQUIRE(slice);
  world.driver.answered(world.directory, *slice, world.must<PerItem>(*slice), world.now);
  CHECK(world.usage(world.pool).retiring_replicas == 15);  // none is acknowledged
  CHECK_FALSE(world.driver.next(world.directory, world.now));
}

TEST_CASE("a steady stream of stores settles between the watermarks without a skip",
          "[policy][evictor]") {
  Full world(100);
  for (int chunk = 0; chunk < 1000; chunk += 5) {
    CHECK(world.store_range(chunk, chunk + 5).size() == 5);
    world.make_room();
    CHECK(world.ready() <= 90);
  }
  CHECK(world.ready() >= 75);
}

TEST_CASE("what is read is not chosen, and is again after its release", "[policy][evictor]") {
  Full world(10);
  const std::vector<ReplicaId> replicas = world.store_range(0, 10);
  world.make_room();
  REQUIRE(world.ready() == 8);
  std::vector<int> left;
  for (int chunk = 0; chunk < 10; ++chunk)
    if (world.is_ready(replicas[static_cast<size_t>(chunk)])) left.push_back(chunk);
  std::vector<LeaseId> leases;
  for (const int chunk : left)
    leases.push_back(world.acquire(world.worker, world.engine, world.ns, {chunk}).lease);
  world.store_range(100, 102);
  world.make_room();
  for (const int chunk : left) CHECK(world.is_ready(replicas[static_cast<size_t>(chunk)]));
  world.must<PerItem>(Release{world.worker.caller(), world.engine, leases});
  world.now = world.now + seconds(2);
  world.store_range(200, 202);
  world.make_room();
  CHECK(world.ready() == 8);
}

TEST_CASE("where nothing may leave the pool rests, and is looked at again later",
          "[policy][evictor]") {
  Full world(10, {.retry = seconds(1)});
  std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  world.store_at_free(all);
  const LeaseId lease = world.acquire(world.worker, world.engine, world.ns, all).lease;
  while (world.driver.has_work()) CHECK_FALSE(world.driver.next(world.directory, world.now));
  CHECK(world.driver.stats().nothing_evictable == 1);
  CHECK_FALSE(world.driver.has_work());  // or the writer would spin
  world.must<PerItem>(Release{world.worker.caller(), world.engine, {lease}});
  CHECK_FALSE(world.driver.next(world.directory, world.now));
  world.now = world.now + seconds(1);
  CHECK(world.make_room() > 0);
  CHECK(world.ready() == 8);
}

TEST_CASE("many that are read at the old end do not keep a pool from making room",
          "[policy][evictor]") {
  Full world(1000, {.slice_replicas = 16});
  world.config.operations_max = 100'000;
  for (int chunk = 0; chunk < 700; ++chunk) world.store_range(chunk, chunk + 1);
  std::vector<int> read;
  for (int chunk = 0; chunk < 600; ++chunk) read.push_back(chunk);
  world.must<Done>(SetEviction{false, {policy::EvictionKind::kLru, 900, 800}});
  while (world.driver.has_work()) world.driver.next(world.directory, world.now);
  world.acquire(world.worker, world.engine, world.ns, read);
  for (int chunk = 700; chunk < 950; ++chunk) world.store_range(chunk, chunk + 1);
  // Reading made them young; now they are old again, and still read.
  int calls = 0;
  while (world.ready() > 800 && ++calls < 200) {
    const auto slice = world.driver.next(world.directory, world.now);
    if (!slice) continue;
    world.driver.answered(world.directory, *slice, world.must<PerItem>(*slice), world.now);
    world.acknowledge();
  }
  CHECK(world.ready() == 800);
  CHECK(world.driver.stats().nothing_evictable == 0);
}

TEST_CASE("a pinned copy is kept until its pin is taken off or its time is over",
          "[policy][evictor][pin]") {
  Full world(10);
  const std::vector<ReplicaId> replicas = world.store_range(0, 9);
  world.must<PerItem>(PinChunks{"llama", {World::digest(0)}, PinKind::kHard, {}});
  world.must<PerItem>(PinChunks{"llama", {World::digest(1)}, PinKind::kSoft, seconds(10)});
  for (int round = 0; round < 20; ++round) {
    world.store_range(100 + round, 101 + round);
    world.make_room();
  }
  CHECK(world.is_ready(replicas[0]));
  CHECK(world.is_ready(replicas[1]));
  world.now = world.now + seconds(11);
  world.must<PerItem>(UnpinChunks{"llama", {World::digest(0)}});
  for (int round = 0; round < 40; ++round) {
    world.store_range(200 + round, 201 + round);
    world.make_room();
  }
  CHECK_FALSE(world.is_ready(replicas[0]));
  CHECK_FALSE(world.is_ready(replicas[1]));
}

TEST_CASE("what a namespace stored before it had a quota leaves when the rest of it is pinned",
          "[policy][evictor][quota]") {
  Full world(100);
  world.store_range(0, 8);
  world.must<Done>(SetNamespaceQuota{"llama", 20 * World::kPage});
  world.store_range(8, 10);
  world.must<PerItem>(PinChunks{"llama", {World::digest(8), World::digest(9)}, PinKind::kHard, {}});
  world.must<Done>(SetNamespaceQuota{"llama", 10 * World::kPage});
  world.make_room();
  CHECK(world.ready() == 8);
}

TEST_CASE("a namespace near its quota makes room within itself and leaves others alone",
          "[policy][evictor][quota]") {
  Full world(100);
  const std::vector<ReplicaId> others = world.store_range(0, 20);
  world.ns = world.open_namespace("tenant");
  world.must<Done>(SetNamespaceQuota{"tenant", 10 * World::kPage});
  for (int chunk = 0; chunk < 100; ++chunk) {
    CHECK(world.store_range(chunk, chunk + 1).size() == 1);
    world.make_room();
    CHECK(world.directory.namespace_usage(world.ns).replicas <= 9);
  }
  for (const ReplicaId id : others) CHECK(world.is_ready(id));
}

TEST_CASE("a quota that is set below what a namespace holds is reached by evicting within it",
          "[policy][evictor][quota]") {
  Full world(200);
  const std::vector<ReplicaId> own = world.store_range(0, 50);
  const NamespaceId first = world.ns;
  world.ns = world.open_namespace("other");
  const std::vector<ReplicaId> others = world.store_range(0, 20);
  world.must<Done>(SetNamespaceQuota{"llama", 20 * World::kPage});
  for (int round = 0; round < 50; ++round) {
    world.make_room();
    world.now = world.now + seconds(1);
  }
  CHECK(world.directory.namespace_usage(first).replicas == 16);
  for (const ReplicaId id : others) CHECK(world.is_ready(id));
}

TEST_CASE("an object that found no room is waited for even below the high watermark",
          "[policy][evictor]") {
  Full world(10);
  world.store_range(0, 9);
  Reserve large = world.reserve_command(world.worker, world.engine, world.ns, {50});
  large.sizes = {3 * World::kPage};
  const Reserved skipped = world.must<Reserved>(large);
  CHECK(skipped.codes[0] == static_cast<uint8_t>(StoreCode::kSkippedPoolFull));
  world.make_room();
  large.id.operation = world.next_operation++;
  CHECK(world.must<Reserved>(large).codes[0] == static_cast<uint8_t>(StoreCode::kGranted));
}

TEST_CASE("another policy takes over what the old one held, oldest first, in slices",
          "[policy][evictor]") {
  Full world(100, {.slice_replicas = 256, .move_replicas = 7});
  const std::vector<ReplicaId> replicas = world.store_range(0, 60);
  for (const auto kind : {policy::EvictionKind::kLru, policy::EvictionKind::kS3Fifo,
                          policy::EvictionKind::kLfuDa, policy::EvictionKind::kAdaptive}) {
    world.must<Done>(SetEviction{false, {kind, 900, 800}});
    while (world.driver.has_work()) world.driver.next(world.directory, world.now);
    const auto rows = world.driver.rows();
    REQUIRE(rows.size() == 1);
    CHECK(rows[0].kind == kind);
    CHECK(rows[0].held == 60);
  }
  // Half moved, and then it has to make room.
  world.must<Done>(SetEviction{false, {policy::EvictionKind::kLru, 500, 300}});
  world.make_room();
  CHECK(world.ready() == 30);
  for (const ReplicaId id : replicas)
    if (!world.is_ready(id)) CHECK_FALSE(world.directory.find<Replica>(id));
}

TEST_CASE("a pool that is trimmed goes down to the target, and the job ends", "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 50);
  world.must<JobStarted>(TrimPool{world.pool, 20 * World::kPage});
  world.make_room();
  CHECK(world.ready() == 20);
  world.drain_jobs();
  CHECK_FALSE(world.driver.has_work());
}

TEST_CASE("a trim that came down to its target is over, also when stores follow at once",
          "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 50);
  world.must<JobStarted>(TrimPool{world.pool, 20 * World::kPage});
  world.make_room();
  world.store_range(100, 110);
  world.make_room();
  CHECK(world.ready() == 30);
  CHECK(world.directory.jobs().empty());
}

TEST_CASE("a trim that finds nothing more to evict ends", "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 10);
  std::vector<int> all;
  for (int chunk = 0; chunk < 10; ++chunk) all.push_back(chunk);
  world.acquire(world.worker, world.engine, world.ns, all);
  world.must<JobStarted>(TrimPool{world.pool, 0});
  world.make_room();
  CHECK(world.ready() == 10);
  CHECK(world.directory.jobs().empty());
}

TEST_CASE("a restarted evictor holds what is READY, and goes on", "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 85);
  world.driver.start(world.directory);
  CHECK(world.driver.rows().at(0).held == 85);
  world.store_range(85, 95);
  world.make_room();
  CHECK(world.ready() == 80);
}

TEST_CASE("without its owner a pool is not emptied", "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 95);
  world.must<Done>(LinkDown{world.worker.session, world.worker.incarnation});
  CHECK(world.make_room() == 0);
  CHECK(world.ready() == 95);
}

TEST_CASE("a pool that fell below its high watermark while its owner was away is left alone",
          "[policy][evictor]") {
  Full world(100, {.slice_replicas = 1});
  const std::vector<ReplicaId> stored = world.store_range(0, 95);
  const std::optional<MakeRoom> begun = world.driver.next(world.directory, world.now);
  REQUIRE(begun);
  world.driver.answered(world.directory, *begun, world.must<PerItem>(*begun), world.now);
  world.acknowledge();
  world.now = world.now + world.config.heartbeat_deadline;
  world.must<Ticked>(Tick{});
  CHECK(world.make_room() == 0);
  world.must<PerItem>(Evict{{stored.begin() + 20, stored.begin() + 30}});
  world.must<Done>(Heartbeat{world.worker.caller(), {}, {}});
  CHECK(world.make_room() == 0);
  CHECK(world.ready() == 84);
}

TEST_CASE("a pool whose owner was silent makes room as soon as it is heard again",
          "[policy][evictor]") {
  Full world(100);
  world.store_range(0, 95);
  world.now = world.now + world.config.heartbeat_deadline;
  world.must<Ticked>(Tick{});
  CHECK(world.make_room() == 0);
  world.must<Done>(Heartbeat{world.worker.caller(), {}, {}});
  world.make_room();
  CHECK(world.ready() == 80);
}

}  // namespace
}  // namespace berth
