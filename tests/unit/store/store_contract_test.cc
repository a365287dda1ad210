// What every store promises, checked on both.

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>

#include "server/store/memory_store.h"
#include "server/store/rocksdb_store.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/record_samples.h"
#include "tests/unit/store/stored.h"

namespace berth {
namespace {

using testing::a_header;
using testing::read_all;
using testing::RecordSamples;
using testing::same;
using testing::Stored;

// A place for one store, which can be opened again after it was let go.
class Place {
 public:
  enum class Kind { kMemory, kRocksDb };
  explicit Place(Kind kind) : kind_(kind) {}

  std::unique_ptr<Store> open(Durability durability = Durability::kInterval) {
    if (kind_ == Kind::kMemory) return std::make_unique<MemoryStore>(disk_, durability);
    auto store = RocksDbStore::open({.directory = directory_.path(), .durability = durability});
    REQUIRE(store);
    return *std::move(store);
  }

 private:
  Kind kind_;
  MemoryDisk disk_;
  testing::TemporaryDirectory directory_;
};

Place::Kind either() { return GENERATE(Place::Kind::kMemory, Place::Kind::kRocksDb); }

TEST_CASE("a store that nobody wrote to is new and empty", "[store]") {
  Place place(either());
  const Stored stored = read_all(*place.open());
  CHECK(stored.loaded.is_new);
  CHECK_FALSE(stored.loaded.moved);
  CHECK(stored.mutations.empty());
}

TEST_CASE("what was committed is read back after the store was closed", "[store]") {
  Place place(either());
  RecordSamples samples(5);
  std::vector<Mutation> mutations = samples.one_of_each();
  mutations.insert(mutations.begin(), a_header());
  REQUIRE(place.open()->commit(mutations, Time{777}, false));

  const Stored stored = read_all(*place.open());
  CHECK_FALSE(stored.loaded.is_new);
  CHECK_FALSE(stored.loaded.moved);
  CHECK(stored.loaded.now == Time{777});
  for (const Mutation& mutation : mutations) {
    INFO("kind " << static_cast<int>(mutation.key.kind));
    const Mutation* read = stored.find(mutation.key);
    REQUIRE(read);
    CHECK(same(*read, mutation));
  }
}

TEST_CASE("a reservation comes back with the replicas of its open items", "[store]") {
  Place place(either());
  RecordSamples samples(11);
  Reservation reservation = samples.a_reservation();
  reservation.quarantined = false;
  const ReservedItem item{3, samples.key(9, 32), PoolId(4), 4096};
  reservation.granted = 8;
  reservation.items = {item};
  std::vector<Mutation> written = expand(reservation);
  written.push_back(a_header());
  REQUIRE(place.open()->commit(written, Time{1}, false));

  const Stored stored = read_all(*place.open());
  const Mutation* replica = stored.find(RecordTraits<Replica>::key(reservation.replica_of(item)));
  REQUIRE(replica);
  CHECK(same(*replica, written[1]));
  CHECK(std::get<Replica>(replica->value).in_reservation);
  CHECK(stored.loaded.records == 1);
}

TEST_CASE("a replica that leaves its reservation stands for itself from then on", "[store]") {
  Place place(either());
  RecordSamples samples(12);
  Reservation reservation = samples.a_reservation();
  reservation.granted = 2;
  reservation.items = {{0, samples.key(9, 16), PoolId(4), 4096},
                       {1, samples.key(9, 16), PoolId(4), 4096}};
  auto store = place.open();
  std::vector<Mutation> reserved = expand(reservation);
  reserved.push_back(a_header());
  REQUIRE(store->commit(reserved, Time{1}, false));

  // Item 0 is committed, item 1 aborted.
  Replica ready = std::get<Replica>(reserved[1].value);
  ready.state = ReplicaState::kReady;
  ready.in_reservation = false;
  REQUIRE(store->commit({put_of(ready),
                         {reserved[2].key, Forgotten{}},
                         {RecordTraits<Reservation>::key(reservation.first), Forgotten{}}},
                        Time{2}, false));
  store.reset();

  const Stored stored = read_all(*place.open());
  CHECK(stored.loaded.records == 1);
  REQUIRE(stored.find(RecordTraits<Replica>::key(ready.id)));
  CHECK(same(*stored.find(RecordTraits<Replica>::key(ready.id)), put_of(ready)));
}

TEST_CASE("pools come before the replicas in them, and replicas before the leases on them",
          "[store]") {
  Place place(either());
  RecordSamples samples(13);
  std::vector<Mutation> mutations{a_header()};
  for (int i = 0; i < 20; ++i)
    for (Mutation& mutation : samples.one_of_each()) mutations.push_back(std::move(mutation));
  REQUIRE(place.open()->commit(mutations, Time{1}, false));

  const auto stage_of = [](const Mutation& mutation) {
    switch (mutation.key.kind) {
      case RecordKind::kMeta:
        return 0;
      case RecordKind::kNamespace:
        return 1;
      case RecordKind::kSession:
        return 2;
      case RecordKind::kPool:
        return 3;
      case RecordKind::kReplica:
      case RecordKind::kReservation:
        return 4;
      default:
        return 5;
    }
  };
  int stage = 0;
  for (const Mutation& mutation : read_all(*place.open()).mutations) {
    CHECK(stage_of(mutation) >= stage);
    stage = stage_of(mutation);
  }
  CHECK(stage == 5);
}

TEST_CASE("forgotten records do not come back", "[store]") {
  Place place(either());
  const std::vector<Mutation> mutations = RecordSamples(14).one_of_each();
  auto store = place.open();
  REQUIRE(store->commit({a_header()}, Time{1}, false));
  REQUIRE(store->commit(mutations, Time{2}, false));
  std::vector<Mutation> forgotten;
  for (const Mutation& mutation : mutations) forgotten.push_back({mutation.key, Forgotten{}});
  REQUIRE(store->commit(forgotten, Time{3}, false));
  store.reset();
  CHECK(read_all(*place.open()).loaded.records == 0);
}

TEST_CASE("a large store is handed over in batches, and progress counts records", "[store]") {
  Place place(either());
  RecordSamples samples(15);
  constexpr uint64_t kReplicas = 10'000;
  std::vector<Mutation> mutations{a_header()};
  for (uint64_t i = 1; i <= kReplicas; ++i) {
    Replica replica = samples.a_replica();
    replica.id = ReplicaId(i);
    mutations.push_back(put_of(replica));
  }
  auto store = place.open();
  REQUIRE(store->commit(mutations, Time{1}, false));

  size_t batches = 0;
  size_t largest = 0;
  uint64_t told = 0;
  REQUIRE(store->load(
      [&](std::vector<Mutation>&& batch) {
        ++batches;
        largest = std::max(largest, batch.size());
      },
      [&](uint64_t records) {
        CHECK(records > told);
        told = records;
      }));
  CHECK(batches >= 3);
  CHECK(largest <= 4096);
  CHECK(told == kReplicas);
}

}  // namespace
}  // namespace berth
