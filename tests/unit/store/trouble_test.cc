// Full and failing disks under RocksDB: a failed commit says so, and reopening helps as soon as the
// trouble is over.

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "server/store/rocksdb_store.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/fault_file_system.h"
#include "tests/unit/store/record_samples.h"
#include "tests/unit/store/stored.h"

namespace berth {
namespace {

using testing::a_header;
using testing::FaultFileSystem;
using testing::read_all;
using testing::TemporaryDirectory;

class Rig {
 public:
  explicit Rig(uint64_t memtable_bytes = 64 << 10) {
    auto opened = RocksDbStore::open({.directory = directory_.path(),
                                      .durability = Durability::kInterval,
                                      .memtable_bytes = memtable_bytes,
                                      .file_system = disk_});
    REQUIRE(opened);
    store_ = *std::move(opened);
    REQUIRE(store_->commit({a_header()}, Time{1}, true));
  }

  FaultFileSystem& disk() { return *disk_; }
  RocksDbStore& store() { return *store_; }

  Result<> commit_next() {
    Replica replica = testing::RecordSamples(next_).a_replica();
    replica.id = ReplicaId(next_++);
    return store_->commit({put_of(replica)}, Time{1}, false);
  }
  // Until one fails; how many were acknowledged.
  uint64_t commit_until_refused(uint64_t count_max) {
    for (uint64_t count = 0; count < count_max; ++count) {
      const Result<> committed = commit_next();
      if (committed) continue;
      CHECK(committed.error().reason == Reason::kStoreDegraded);
      return count;
    }
    return count_max;
  }
  uint64_t records() { return read_all(*store_).loaded.records; }

 private:
  TemporaryDirectory directory_;
  std::shared_ptr<FaultFileSystem> disk_ = std::make_shared<FaultFileSystem>();
  std::unique_ptr<RocksDbStore> store_;
  uint64_t next_ = 1;
};

TEST_CASE("a disk that fills up under the log refuses, and goes on after space returns",
          "[store][trouble]") {
  Rig rig;
  REQUIRE(rig.commit_until_refused(20) == 20);
  rig.disk().fill(FaultFileSystem::Files::kLogs, GENERATE(0u, 5u, 40u));
  const Result<> refused = rig.commit_next();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kStoreDegraded);
  CHECK_THAT(refused.error().message, Catch::Contains("space"));

  rig.disk().mend();
  REQUIRE(rig.store().reopen());
  CHECK(rig.records() == 20);
  CHECK(rig.commit_until_refused(20) == 20);
  REQUIRE(rig.store().reopen());
  CHECK(rig.records() == 40);
}

// RocksDB's log writer remembers its failure, and resuming does not help when the memtable is
// empty.
TEST_CASE("a disk that fills up before anything was written goes on too", "[store][trouble]") {
  Rig rig;
  REQUIRE(rig.store().reopen());  // which leaves empty memtables and an empty log
  rig.disk().fill(FaultFileSystem::Files::kLogs);
  REQUIRE_FALSE(rig.commit_next());
  rig.disk().mend();
  REQUIRE(rig.store().reopen());
  CHECK(rig.records() == 0);
  CHECK(rig.commit_until_refused(5) == 5);
  CHECK(rig.records() == 5);
}

TEST_CASE(
    "a disk that fills up during a flush of memtables refuses sooner or later, and loses nothing",
    "[store][trouble]") {
  Rig rig;
  rig.disk().fill(FaultFileSystem::Files::kTables);
  const uint64_t acknowledged = rig.commit_until_refused(100'000);
  CHECK(acknowledged < 100'000);
  CHECK_FALSE(rig.store().reopen());  // replaying the log needs room for a table
  rig.disk().mend();
  REQUIRE(rig.store().reopen());
  CHECK(rig.records() >= acknowledged);
  CHECK(rig.records() <= acknowledged + 1);
  CHECK(rig.commit_until_refused(100) == 100);
}

TEST_CASE("an fsync that fails is told, and reopening helps", "[store][trouble]") {
  Rig rig;
  REQUIRE(rig.commit_until_refused(5) == 5);
  rig.disk().fail_syncs(FaultFileSystem::Files::kLogs);
  const Result<> flushed = rig.store().flush();
  REQUIRE_FALSE(flushed);
  CHECK(flushed.error().reason == Reason::kStoreDegraded);
  rig.disk().mend();
  REQUIRE(rig.store().reopen());
  CHECK(rig.records() == 5);
  CHECK(rig.store().flush());
}

TEST_CASE("while the store cannot be reopened, everything is refused and nothing crashes",
          "[store][trouble]") {
  Rig rig;
  REQUIRE(rig.commit_until_refused(5) == 5);
  rig.disk().fill(FaultFileSystem::Files::kAll);
  REQUIRE_FALSE(rig.commit_next());
  for (int i = 0; i < 3; ++i) {
    const Result<> reopened = rig.store().reopen();
    REQUIRE_FALSE(reopened);
    CHECK(reopened.error().reason == Reason::kStoreDegraded);
    CHECK_FALSE(rig.commit_next());
    CHECK_FALSE(rig.store().flush());
    CHECK_FALSE(rig.store().load([](std::vector<Mutation>&&) {}, {}));
  }
  rig.disk().mend();
  REQUIRE(rig.store().reopen());
  CHECK(rig.records() == 5);
}

}  // namespace
}  // namespace berth
