// Runs on disk: what is one record, what becomes of it, and what a crash leaves.

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>

#include "server/store/rocks_runs.h"
#include "server/store/rocksdb_store.h"
#include "server/store/run_codec.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/fault_file_system.h"
#include "tests/unit/store/raw_database.h"
#include "tests/unit/store/ready_replicas.h"
#include "tests/unit/store/stored.h"

namespace berth {
namespace {

using testing::a_header;
using testing::all_forgotten;
using testing::FaultFileSystem;
using testing::first_record;
using testing::first_records;
using testing::forgotten;
using testing::in_state;
using testing::read_all;
using testing::ready_replica;
using testing::records_of;
using testing::RecordSamples;
using testing::retiring;
using testing::same;
using testing::Stored;

// A store beside what should be in it.
class Shelf {
 public:
  explicit Shelf(std::shared_ptr<FaultFileSystem> disk = nullptr) : disk_(std::move(disk)) {
    open();
    commit({a_header()});
  }

  const std::string& path() const { return directory_.path(); }
  RocksDbStore& store() { return *store_; }
  const std::map<uint64_t, Mutation>& expected() const { return expected_; }

  void commit(const std::vector<Mutation>& mutations, bool is_synced = false) {
    REQUIRE(store_->commit(mutations, now_ = now_ + Duration{1}, is_synced));
    for (const Mutation& mutation : mutations) {
      if (mutation.key.kind != RecordKind::kReplica) continue;
      expected_.erase(mutation.key.first);
      if (std::holds_alternative<Replica>(mutation.value))
        expected_.emplace(mutation.key.first, mutation);
    }
  }
  void close() { store_.reset(); }
  void open() {
    close();
    auto opened = RocksDbStore::open({.directory = directory_.path(),
                                      .durability = Durability::kInterval,
                                      .memtable_bytes = 64 << 10,
                                      .file_system = disk_});
    if (!opened) FAIL(opened.error().message);
    store_ = *std::move(opened);
  }
  void check() { check(expected_); }
  void check(const std::map<uint64_t, Mutation>& expected) {
    const Stored stored = read_all(*store_);
    CHECK(stored.loaded.records == expected.size());
    std::map<uint64_t, const Mutation*> found;
    for (const Mutation& mutation : stored.mutations)
      if (mutation.key.kind == RecordKind::kReplica)
        if (!found.emplace(mutation.key.first, &mutation).second)
          FAIL("replica " << mutation.key.first << " is there twice");
    REQUIRE(found.size() == expected.size());
    for (const auto& [id, mutation] : expected)
      if (!found.contains(id) || !same(*found[id], mutation))
        FAIL("replica " << id << " is not there as it was committed");
  }
  // How many records, with the store closed for the look.
  size_t count(Family family) {
    close();
    const size_t counted = records_of(path(), family);
    open();
    return counted;
  }

 private:
  testing::TemporaryDirectory directory_;
  std::shared_ptr<FaultFileSystem> disk_;
  std::unique_ptr<RocksDbStore> store_;
  std::map<uint64_t, Mutation> expected_;
  Time now_;
};

// ---- What is one record
// -----------------------------------------------------------------------------------------

TEST_CASE("replicas that become READY together are one record on disk", "[store][runs]") {
  Shelf shelf;
  shelf.commit(first_records(1, 100));
  CHECK(shelf.count(Family::kRuns) == 1);
  CHECK(shelf.count(Family::kReplicas) == 0);
  shelf.check();
}

TEST_CASE("a few replicas stand for themselves", "[store][runs]") {
  Shelf shelf;
  shelf.commit(first_records(1, kRunReplicasMin - 1));
  CHECK(shelf.count(Family::kRuns) == 0);
  CHECK(shelf.count(Family::kReplicas) == kRunReplicasMin - 1);
  shelf.check();
}

TEST_CASE("a commit of many replicas is as many runs as it takes", "[store][runs]") {
  Shelf shelf;
  std::vector<Mutation> mutations = first_records(1, 2 * kRunReplicasMax + 7);
  mutations.erase(mutations.begin() + 50);
  mutations.push_back(RecordSamples(1).one_of_each()[0]);
  REQUIRE(shelf.store().commit(mutations, Time{1}, false));
  shelf.close();
  CHECK(records_of(shelf.path(), Family::kRuns) == 3);  // 50, 128, 84
  shelf.open();
  CHECK(read_all(shelf.store()).loaded.records == mutations.size());
}

// ---- What becomes of it
// -----------------------------------------------------------------------------------------

TEST_CASE("a replica of a run that changes comes back as it is now", "[store][runs]") {
  Shelf shelf;
  const std::vector<Mutation> made = first_records(1, 20);
  shelf.commit(made);
  shelf.commit(
      {retiring(made[3]), in_state(made[4], ReplicaState::kQuarantined, Why::kLedgerMismatch)});
  shelf.check();
  shelf.open();
  shelf.check();
  shelf.commit({in_state(made[4], ReplicaState::kReady, Why::kNone)});
  shelf.commit({in_state(made[3], ReplicaState::kRetiring, Why::kMadeRoom)});
  shelf.check();
  CHECK(shelf.count(Family::kReplicas) == 0);
  shelf.check();
}

TEST_CASE("a replica that its run forgot does not come back, whatever becomes of the others",
          "[store][runs]") {
  Shelf shelf;
  const std::vector<Mutation> made = first_records(1, 20);
  shelf.commit(made);
  shelf.commit({retiring(made[5]), retiring(made[6])});
  shelf.commit({forgotten(6)});
  shelf.check();
  shelf.open();
  shelf.commit({forgotten(7)});
  shelf.commit({retiring(made[8])});
  shelf.commit({forgotten(6)});  // again: nothing is counted twice
  shelf.check();
  shelf.open();
  shelf.check();
}

TEST_CASE("a replica that comes back although its run forgot it stands for itself",
          "[store][runs]") {
  Shelf shelf;
  shelf.commit(first_records(1, 20));
  shelf.commit(all_forgotten(4, 8));
  RecordSamples samples(99);
  std::vector<Mutation> again;
  for (uint64_t id = 5; id < 10; ++id) again.push_back(first_record(ready_replica(samples, id)));
  shelf.commit(again);
  shelf.check();
  shelf.open();
  shelf.check();
  shelf.commit({retiring(again[1])});
  shelf.commit({forgotten(5)});
  shelf.open();
  shelf.check();
  shelf.commit(all_forgotten(1, 20));
  shelf.check();
  CHECK(shelf.count(Family::kRuns) + shelf.count(Family::kReplicas) == 0);
}

TEST_CASE("a replica whose first record is said to be written twice is there once, as it was put",
          "[store][runs]") {
  Shelf shelf;
  shelf.commit(first_records(1, 20));
  RecordSamples samples(5);
  shelf.commit({first_record(ready_replica(samples, 7))});
  shelf.check();
  shelf.open();
  shelf.check();
}

TEST_CASE("the last replica of a run takes it with it", "[store][runs]") {
  Shelf shelf;
  const std::vector<Mutation> made = first_records(1, 30);
  shelf.commit(made);
  shelf.commit({retiring(made[0])});
  SECTION("one after the other") {
    for (uint64_t id = 30; id >= 1; --id) shelf.commit({forgotten(id)});
  }
  SECTION("at once") { shelf.commit(all_forgotten(1, 30)); }
  SECTION("over a reopening") {
    shelf.commit(all_forgotten(1, 15));
    shelf.open();
    shelf.commit(all_forgotten(16, 15));
  }
  CHECK(shelf.count(Family::kRuns) == 0);
  CHECK(shelf.count(Family::kReplicas) == 0);
  shelf.check();
}

// ---- Runs that are mostly gone
// ----------------------------------------------------------------------------------

TEST_CASE("what is left of a run that is mostly gone is written anew", "[store][runs]") {
  Shelf shelf;
  const std::vector<Mutation> made = first_records(1, 100);
  shelf.commit(made);
  shelf.commit({retiring(made[90])});
  shelf.commit(all_forgotten(1, 74));
  CHECK(shelf.count(Family::kRuns) == 2);  // 26 of 100: it still stands, with what has changed
  shelf.commit({forgotten(75)});
  shelf.check();
  SECTION("in the next commit") { shelf.commit({forgotten(76)}); }
  SECTION("in the next commit after a restart, with what it changes") {
    shelf.open();
    shelf.commit({retiring(made[80]), forgotten(76)});
  }
  CHECK(shelf.count(Family::kRuns) == 0);
  CHECK(shelf.count(Family::kReplicas) == 24);
  shelf.check();
  shelf.commit({forgotten(91), retiring(made[95])});
  shelf.check();
}

TEST_CASE("a commit writes only a few runs anew, and the next ones the others", "[store][runs]") {
  Shelf shelf;
  constexpr uint64_t kRuns = 3 * kSparseRunsPerCommit;
  std::vector<Mutation> forgets;
  for (uint64_t run = 0; run < kRuns; ++run) {
    shelf.commit(first_records(1 + run * 1000, 40));
    for (Mutation& mutation : all_forgotten(1 + run * 1000, 30))
      forgets.push_back(std::move(mutation));
  }
  shelf.commit(forgets);
  for (uint64_t left = kRuns; left > 0; left -= kSparseRunsPerCommit) {
    CHECK(shelf.count(Family::kRuns) == 2 * left);
    shelf.commit({});
  }
  CHECK(shelf.count(Family::kRuns) == 0);
  CHECK(shelf.count(Family::kReplicas) == 10 * kRuns);
  shelf.check();
}

// ---- Trouble
// ----------------------------------------------------------------------------------------------------

TEST_CASE(
    "a commit that fails leaves its runs as they were or as they should be, and the next "
    "ones know which",
    "[store][runs]") {
  const auto disk = std::make_shared<FaultFileSystem>();
  Shelf shelf(disk);
  const std::vector<Mutation> made = first_records(1, 40);
  shelf.commit(made);
  shelf.commit(all_forgotten(1, 5));
  const std::map<uint64_t, Mutation> before = shelf.expected();

  disk->fill(FaultFileSystem::Files::kLogs, GENERATE(0u, 20u, 100'000u));
  std::vector<Mutation> refused = all_forgotten(6, 34);  // all but the last
  for (Mutation& mutation : first_records(100, 20)) refused.push_back(std::move(mutation));
  const bool landed = shelf.store().commit(refused, Time{50}, false).has_value();
  disk->mend();
  REQUIRE(shelf.store().reopen());
  // None of it may be believed: the run is not empty, and 100 to 119 are in no run.
  if (!landed) {
    shelf.check(before);
    shelf.commit({retiring(made[20])});
    shelf.check();
    shelf.commit(first_records(100, 20));
  } else {
    shelf.commit(refused);
  }
  shelf.commit({forgotten(110)});
  shelf.open();
  shelf.check();
}

TEST_CASE("a power cut leaves runs as one of the commits left them", "[store][runs]") {
  const auto disk = std::make_shared<FaultFileSystem>();
  Shelf shelf(disk);
  // Each commit makes a run, and forgets the most of an older one; every second one is fsynced.
  std::vector<std::map<uint64_t, Mutation>> states;
  constexpr uint64_t kStep = 1000;
  for (uint64_t n = 1; n <= 41; ++n) {
    std::vector<Mutation> mutations = first_records(n * kStep, 60);
    mutations.push_back(retiring(mutations[7]));
    if (n > 3)
      for (Mutation& mutation : all_forgotten((n - 3) * kStep, 50 + n % 11))
        mutations.push_back(std::move(mutation));
    shelf.commit(mutations, n % 2 == 0);
    states.push_back(shelf.expected());
  }
  shelf.close();
  disk->power_cut();
  shelf.open();
  const size_t records = read_all(shelf.store()).loaded.records;
  REQUIRE((records == states[39].size() || records == states[40].size()));
  shelf.check(records == states[39].size() ? states[39] : states[40]);
}

// ---- Damage and older stores
// ------------------------------------------------------------------------------------

void check_refused(Shelf& shelf, const std::string& said) {
  const auto loaded = shelf.store().load([](std::vector<Mutation>&&) {}, {});
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().reason == Reason::kStoreCorrupt);
  CHECK_THAT(loaded.error().message, Catch::Contains(said));
  // Nothing is written by who does not know what is there.
  CHECK_FALSE(shelf.store().commit({forgotten(1)}, Time{99}, false));
}

TEST_CASE("runs that do not read are refused, naming their key", "[store][runs]") {
  Shelf shelf;
  shelf.commit(first_records(0x31, 10));
  shelf.close();
  RunCodec codec;
  const std::string of_ten(codec.encode(first_records(0x31, 10)));
  Codec records;
  const auto damage = [&](const std::string& key, const std::string& value,
                          Family family = Family::kRuns) {
    testing::with_database(shelf.path(), [&](RocksDatabase& database) {
      testing::put_raw(database, family, key, value);
    });
    shelf.open();
  };
  SECTION("junk") {
    damage(key_of_id(0x1000), "junk");
    check_refused(shelf, "runs, key 0x0000000000001000");
  }
  SECTION("a key that is cut") {
    damage("short", of_ten);
    check_refused(shelf, "runs, key 0x73686f7274");
  }
  SECTION("changes without their run") {
    damage(key_of_id(0x30) + kKeySuffix, "");
    check_refused(shelf, "runs, key 0x0000000000000030ff");
  }
  SECTION("changes that are junk") {
    damage(key_of_id(0x31) + kKeySuffix, "junk");
    check_refused(shelf, "runs, key 0x0000000000000031ff");
  }
  SECTION("two runs over one id") {
    damage(key_of_id(0x35), of_ten);
    check_refused(shelf, "runs, key 0x0000000000000035");
  }
}

TEST_CASE("a replica that is in a run and stands for itself too is refused", "[store][runs]") {
  Shelf shelf;
  const std::vector<Mutation> made = first_records(1, 10);
  shelf.commit(made);
  shelf.close();
  testing::with_database(shelf.path(), [&](RocksDatabase& database) {
    Codec codec;
    const auto change = codec.encode(made[4]);
    testing::put_raw(database, Family::kReplicas, std::string(change->key),
                     std::string(change->value));
  });
  shelf.open();
  const auto loaded = shelf.store().load([](std::vector<Mutation>&&) {}, {});
  REQUIRE_FALSE(loaded);
  CHECK_THAT(loaded.error().message, Catch::Contains("replicas, key 0x0000000000000005"));
}

TEST_CASE("a store of schema 2 is taken over whole, and is of our schema from then on",
          "[store][runs][FC-64]") {
  Shelf shelf;
  std::vector<Mutation> old = first_records(1, 30);
  for (Mutation& mutation : old) mutation.is_first_record = false;  // as it wrote them
  shelf.commit(old);
  shelf.close();
  testing::make_older(shelf.path(), 2, {Family::kRuns});
  shelf.open();
  shelf.check();
  shelf.commit({a_header(2)});
  shelf.commit(first_records(31, 30));
  shelf.commit({forgotten(5), forgotten(35), retiring(old[8])});
  shelf.open();
  shelf.check();
  shelf.close();
  testing::with_database(shelf.path(), [](RocksDatabase& database) {
    CHECK(testing::header_of(database).schema == kStoreSchema);
  });
}

// ---- At random
// --------------------------------------------------------------------------------------------------

// One commit of anything that may become of replicas.
std::vector<Mutation> any_changes(RecordSamples& samples, uint64_t& next_id,
                                  const std::map<uint64_t, Mutation>& live) {
  std::map<uint64_t, Mutation> changes;
  for (uint64_t i = samples.below(3); i > 0; --i) {  // made together, sometimes with a hole
    next_id += samples.below(3);
    const auto in_namespace = static_cast<uint32_t>(1 + samples.below(2));
    for (uint64_t n = samples.below(samples.flag() ? 10 : 200); n > 0; --n, ++next_id)
      changes[next_id] = first_record(ready_replica(samples, next_id, in_namespace));
  }
  std::vector<Mutation> forgets;
  const uint64_t from = 1 + samples.below(next_id);
  const uint64_t odds = 1 + samples.below(40);
  for (auto it = samples.flag() ? live.begin() : live.lower_bound(from); it != live.end(); ++it) {
    if (samples.below(odds) != 0) continue;
    if (samples.flag())
      changes[it->first] =
          samples.flag() ? retiring(it->second)
                         : in_state(it->second, ReplicaState::kQuarantined, Why::kLedgerMismatch);
    else
      forgets.push_back(forgotten(it->first));
  }
  // An id that is gone comes back; it should not.
  if (samples.below(4) == 0 && from < next_id && !live.contains(from) && !changes.contains(from))
    changes[from] = first_record(ready_replica(samples, from));
  std::vector<Mutation> mutations;
  for (auto& [id, mutation] : changes) mutations.push_back(std::move(mutation));
  for (Mutation& mutation : forgets) mutations.push_back(std::move(mutation));
  return mutations;
}

TEST_CASE("whatever becomes of replicas, the store holds what a map would", "[store][runs]") {
  for (const uint64_t seed : testing::sample_seeds(8)) {
    INFO("replay with BERTH_SEED=" << seed);
    RecordSamples samples(seed);
    Shelf shelf;
    uint64_t next_id = 1;
    for (int step = 0; step < 60; ++step) {
      shelf.commit(any_changes(samples, next_id, shelf.expected()));
      const uint64_t what = samples.below(12);
      if (what == 0) shelf.open();
      if (what == 1) REQUIRE(shelf.store().reopen());
      if (what <= 2) shelf.check();
    }
    shelf.check();
    shelf.commit(all_forgotten(1, next_id));
    shelf.check();
    CHECK(shelf.count(Family::kRuns) + shelf.count(Family::kReplicas) == 0);
  }
}

}  // namespace
}  // namespace berth
