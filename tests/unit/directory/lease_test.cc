// Acquire, renew, release, retire, reclaim: nothing is freed under a reader, and nothing is kept
// without one.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Read : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 64 * kPage);
  SessionId client = join(worker);
  SessionId other = join(worker, "engine-2");
  std::vector<ReplicaId> stored = store(worker, client, ns, {1, 2, 3});
};

TEST_CASE_METHOD(Read, "an acquire protects the longest complete prefix and says why it ends",
                 "[directory][lease]") {
  const Acquired acquired = acquire(worker, client, ns, {1, 2, 9, 3});
  CHECK(acquired.classes.size() == 2);
  CHECK(acquired.miss == MissReason::kNotPresent);
  REQUIRE(acquired.replicas.size() == 2);
  CHECK(acquired.replicas[0].id == stored[0]);
  CHECK(directory.lease_count(stored[0]) == 1);
  CHECK(directory.lease_count(stored[2]) == 0);
}

TEST_CASE_METHOD(Read, "an acquire without a hit takes no lease", "[directory][lease]") {
  const Acquired acquired = acquire(worker, client, ns, {9});
  CHECK_FALSE(acquired.lease.valid());
  CHECK(directory.leases().empty());
}

TEST_CASE_METHOD(Read, "a retiring replica takes no new reader and keeps the ones it has",
                 "[directory][lease]") {
  const Acquired early = acquire(worker, client, ns, {1});
  must<PerItem>(Evict{{stored[0]}});
  CHECK_FALSE(asked(Ask::Kind::kReclaim));
  CHECK(acquire(worker, other, ns, {1}).miss == MissReason::kRetiring);
  CHECK(must<PerItem>(ReclaimAck{worker.caller(), {stored[0]}}).done[0] == 0);

  must<PerItem>(Release{worker.caller(), client, {early.lease}});
  CHECK(asked(Ask::Kind::kReclaim));
  CHECK(usage(pool).retiring_bytes == int64_t(kPage));
  CHECK(must<PerItem>(ReclaimAck{worker.caller(), {stored[0]}}).done[0] == 1);
  CHECK(usage(pool).allocated_bytes() == int64_t(2 * kPage));
}

TEST_CASE_METHOD(Read, "releasing twice has no second effect and never takes another's protection",
                 "[directory][lease][FC-04]") {
  const Acquired a = acquire(worker, client, ns, {1});
  const Acquired b = acquire(worker, other, ns, {1});
  CHECK(must<PerItem>(Release{worker.caller(), client, {a.lease}}).done[0] == 1);
  CHECK(must<PerItem>(Release{worker.caller(), client, {a.lease, a.lease}}).done ==
        std::vector<uint8_t>{0, 0});
  CHECK(must<PerItem>(Release{worker.caller(), client, {b.lease}}).done[0] == 0);
  CHECK(directory.lease_count(stored[0]) == 1);
  must<PerItem>(Evict{{stored[0]}});
  CHECK(must<PerItem>(ReclaimAck{worker.caller(), {stored[0]}}).done[0] == 0);
}

TEST_CASE_METHOD(Read, "an over-age lease is asked for, keeps protecting, and is not revived",
                 "[directory][lease][FC-16]") {
  const Acquired acquired = acquire(worker, client, ns, {1});
  now = now + config.lease_ttl_default;
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  must<Ticked>(Tick{});
  CHECK(asked(Ask::Kind::kRevoke));
  CHECK(must<PerItem>(Renew{worker.caller(), client, {acquired.lease}, {}}).done[0] == 0);
  must<PerItem>(Evict{{stored[0]}});
  CHECK(must<PerItem>(ReclaimAck{worker.caller(), {stored[0]}}).done[0] == 0);
  must<PerItem>(Release{worker.caller(), client, {acquired.lease}});
  CHECK(asked(Ask::Kind::kReclaim));
}

TEST_CASE_METHOD(Read, "a renewed lease is not over age", "[directory][lease]") {
  const Acquired acquired = acquire(worker, client, ns, {1});
  for (int i = 0; i < 3; ++i) {
    now = now + (config.lease_ttl_default - seconds(1));
    must<Done>(Heartbeat{worker.caller(), {}, {}});
    CHECK(must<PerItem>(Renew{worker.caller(), client, {acquired.lease}, {}}).done[0] == 1);
    must<Ticked>(Tick{});
    CHECK_FALSE(asked(Ask::Kind::kRevoke));
  }
}

TEST_CASE_METHOD(Read, "a reader that walks away leaves protection only until its death is proven",
                 "[directory][lease][FC-02]") {
  acquire(worker, client, ns, {1, 2, 3});
  must<PerItem>(Evict{stored});
  must<Done>(FenceClient{worker.caller(), client});
  CHECK(asked(Ask::Kind::kClientFenced));
  drain_jobs();
  CHECK(directory.leases().empty());
  must<PerItem>(ReclaimAck{worker.caller(), stored});
  CHECK(usage(pool).allocated_bytes() == 0);
}

TEST_CASE_METHOD(Read, "reclaims that were not acknowledged are asked for again",
                 "[directory][lease]") {
  must<PerItem>(Evict{{stored[0]}});
  REQUIRE(asked(Ask::Kind::kReclaim));
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  now = now + config.reclaim_again;
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  must<Ticked>(Tick{});
  CHECK(asked(Ask::Kind::kReclaim));
  must<Ticked>(Tick{});
  CHECK_FALSE(asked(Ask::Kind::kReclaim));
}

TEST_CASE_METHOD(Read, "a round of repeated reclaims goes through everything, in slices",
                 "[directory][lease]") {
  config.slice_records = 2;
  const auto more = store(worker, client, ns, {11, 12, 13, 14});
  acquire(worker, client, ns, {11});
  must<PerItem>(Evict{stored});
  must<PerItem>(Evict{more});
  std::set<ReplicaId> unasked(more.begin() + 1, more.end());  // the first one is read
  unasked.insert(stored.begin(), stored.end());
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  now = now + config.reclaim_again;
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  for (bool goes_on = true; goes_on;) {
    goes_on = must<Ticked>(Tick{}).more;
    for (const Ask& ask : asks) {
      CHECK(ask.replicas.size() <= 2);
      for (const ReplicaId replica : ask.replicas) CHECK(unasked.erase(replica) == 1);
    }
  }
  CHECK(unasked.empty());
  must<Ticked>(Tick{});
  CHECK_FALSE(asked(Ask::Kind::kReclaim));
}

TEST_CASE_METHOD(Read, "a repeated acquire answers from its lease while that is held",
                 "[directory][lease][operations]") {
  const Acquire command = acquire_command(worker, client, ns, {1, 2});
  const Acquired first = must<Acquired>(command);
  const Acquired again = must<Acquired>(command);
  CHECK(again.lease == first.lease);
  CHECK(again.replicas.size() == 2);
  CHECK(directory.lease_count(stored[0]) == 1);
  must<PerItem>(Release{worker.caller(), client, {first.lease}});
  CHECK_FALSE(must<Acquired>(command).lease.valid());
}

TEST_CASE_METHOD(Read, "a chunk is a hit only with every shard and part", "[directory][chunks]") {
  const NamespaceId wide = open_namespace("wide", 2, 2);
  Reserve command = reserve_command(worker, client, wide, {1, 1, 1, 1});
  for (size_t i = 0; i < 4; ++i) {
    command.keys[i].shard = static_cast<uint16_t>(i / 2);
    command.keys[i].part = static_cast<uint16_t>(i % 2);
  }
  const Reserved reserved = must<Reserved>(command);
  std::vector<ReplicaId> ids;
  for (uint64_t i = 0; i < 4; ++i) ids.push_back(ReplicaId(reserved.first.value() + i));
  must<Committed>(commit_command(worker, client, {ids[0], ids[1], ids[2]}));
  CHECK(probe_chunks(client, wide, {1}).classes.empty());
  CHECK_FALSE(acquire(worker, client, wide, {1}).lease.valid());
  must<Committed>(commit_command(worker, client, {ids[3]}));
  CHECK(probe_chunks(client, wide, {1}).classes.size() == 1);
  CHECK(acquire(worker, client, wide, {1}).replicas.size() == 4);
}

TEST_CASE_METHOD(Read, "each shard must be readable by its own target worker",
                 "[directory][chunks]") {
  const NamespaceId sharded = open_namespace("sharded", 2, 1);
  const Worker second = open_worker("w1");
  open_pool(second, 64 * kPage);
  const SessionId rank1 = join(second, "engine-1");
  const auto store_shard = [&](const Worker& at, SessionId writer, uint16_t shard) {
    Reserve command = reserve_command(at, writer, sharded, {1});
    command.keys[0].shard = shard;
    must<Committed>(commit_command(at, writer, {must<Reserved>(command).first}));
  };
  store_shard(worker, client, 0);
  store_shard(second, rank1, 1);
  const Namespace& space = *directory.find<Namespace>(sharded);
  const std::vector<Digest> chain{digest(1)};
  CHECK(probe(directory, space, chain, *readers_for(directory, space, client, {})).classes.empty());
  const std::vector<Target> targets{{0, worker.session}, {1, second.session}};
  CHECK(probe(directory, space, chain, *readers_for(directory, space, SessionId(), targets))
            .classes.size() == 1);
  Acquire acquire = acquire_command(worker, client, sharded, {1});
  acquire.targets = {{1, rank1}};
  CHECK(must<Acquired>(acquire).replicas.size() == 2);
}

TEST_CASE_METHOD(Read, "a session with as many leases as it may is refused another",
                 "[directory][lease]") {
  config.leases_max = 1;
  acquire(worker, client, ns, {1});
  CHECK(refused(acquire_command(worker, client, ns, {2})) == Reason::kLimitReached);
}

}  // namespace
}  // namespace berth
