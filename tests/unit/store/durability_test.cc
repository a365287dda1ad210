// What survives a killed process and a power cut.

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/store/memory_store.h"
#include "server/store/rocksdb_store.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/fault_file_system.h"
#include "tests/unit/store/store_process.h"
#include "tests/unit/store/stored.h"
#include "tests/unit/store/transitions.h"

namespace berth {
namespace {

using testing::a_header;
using testing::FaultFileSystem;
using testing::read_all;
using testing::StoreProcess;
using testing::TemporaryDirectory;
using testing::transition;
using testing::whole_transitions;

TEST_CASE("kill -9 loses nothing that was acknowledged", "[store][durability]") {
  const auto durability = GENERATE(Durability::kSync, Durability::kInterval, Durability::kNone);
  TemporaryDirectory directory;
  StoreProcess server(directory.path(), durability);
  // Killed in the middle of its work, then read to the last acknowledgement that left it.
  uint64_t acknowledged = 0;
  while (acknowledged < 400) {
    const std::optional<uint64_t> next = server.next_acknowledged();
    REQUIRE(next);
    acknowledged = *next;
  }
  server.kill_hard();
  while (const std::optional<uint64_t> next = server.next_acknowledged()) acknowledged = *next;

  auto store = RocksDbStore::open({.directory = directory.path()});
  REQUIRE(store);
  const uint64_t found = whole_transitions(read_all(**store));
  CHECK(found >= acknowledged);
  CHECK(found <= acknowledged + 1);  // the last one may have been written, its answer not yet
}

struct PowerCut {
  uint64_t acknowledged = 0;
  uint64_t fsynced = 0;
  uint64_t found = 0;
};

// 300 transitions, the power cut after the last one. Transition 200 asks for an fsync.
PowerCut cut_power(Durability durability) {
  TemporaryDirectory directory;
  const auto disk = std::make_shared<FaultFileSystem>();
  PowerCut result;
  {
    auto store = RocksDbStore::open({.directory = directory.path(),
                                     .durability = durability,
                                     .memtable_bytes = 64 << 10,
                                     .file_system = disk});
    REQUIRE(store);
    REQUIRE((*store)->commit({a_header()}, Time{1}, true));
    for (uint64_t n = 1; n <= 300; ++n) {
      REQUIRE((*store)->commit(transition(n), Time{1}, n == 200));
      result.acknowledged = n;
      if (n == 200) result.fsynced = n;
    }
  }
  disk->power_cut();
  auto store = RocksDbStore::open({.directory = directory.path(),
                                   .durability = durability,
                                   .memtable_bytes = 64 << 10,
                                   .file_system = disk});
  REQUIRE(store);
  result.found = whole_transitions(read_all(**store));
  return result;
}

TEST_CASE("sync: a power cut loses nothing that was acknowledged", "[store][durability]") {
  const PowerCut cut = cut_power(Durability::kSync);
  CHECK(cut.found == cut.acknowledged);
}

TEST_CASE(
    "interval: a power cut loses only what is younger than the last fsync, and only whole "
    "transitions",
    "[store][durability]") {
  const PowerCut cut = cut_power(Durability::kInterval);
  CHECK(cut.found >= cut.fsynced);
  CHECK(cut.found < cut.acknowledged);  // else the test's disk remembers too much
}

TEST_CASE("interval: what was flushed survives a power cut", "[store][durability]") {
  TemporaryDirectory directory;
  const auto disk = std::make_shared<FaultFileSystem>();
  {
    auto store = RocksDbStore::open({.directory = directory.path(),
                                     .durability = Durability::kInterval,
                                     .memtable_bytes = 1 << 20,
                                     .file_system = disk});
    REQUIRE(store);
    REQUIRE((*store)->commit({a_header()}, Time{1}, false));
    for (uint64_t n = 1; n <= 10; ++n) REQUIRE((*store)->commit(transition(n), Time{1}, false));
    REQUIRE((*store)->flush());
    for (uint64_t n = 11; n <= 20; ++n) REQUIRE((*store)->commit(transition(n), Time{1}, false));
  }
  disk->power_cut();
  auto store = RocksDbStore::open({.directory = directory.path(),
                                   .durability = Durability::kInterval,
                                   .memtable_bytes = 1 << 20,
                                   .file_system = disk});
  REQUIRE(store);
  CHECK(whole_transitions(read_all(**store)) == 10);
}

TEST_CASE("how often a store fsyncs is what its durability says", "[store][durability]") {
  TemporaryDirectory directory;
  const auto disk = std::make_shared<FaultFileSystem>();
  const auto syncs_of = [&](Durability durability, bool asked) {
    TemporaryDirectory place;
    auto store = RocksDbStore::open({.directory = place.path(),
                                     .durability = durability,
                                     .memtable_bytes = 1 << 20,
                                     .file_system = disk});
    REQUIRE(store);
    REQUIRE((*store)->commit({a_header()}, Time{1}, false));
    const uint64_t before = disk->syncs();
    REQUIRE((*store)->commit(transition(1), Time{1}, asked));
    return disk->syncs() - before;
  };
  CHECK(syncs_of(Durability::kSync, false) == 1);
  CHECK(syncs_of(Durability::kInterval, false) == 0);
  CHECK(syncs_of(Durability::kInterval, true) == 1);
  CHECK(syncs_of(Durability::kNone, true) == 0);
}

// ---- The memory store keeps the same promises
// ------------------------------------------------------------------

TEST_CASE("memory store: a power cut takes what was not flushed", "[store][memory]") {
  MemoryDisk disk;
  MemoryStore store(disk);
  REQUIRE(store.commit({a_header()}, Time{1}, true));
  REQUIRE(store.commit(transition(1), Time{2}, false));
  REQUIRE(store.flush());
  REQUIRE(store.commit(transition(2), Time{3}, false));
  CHECK(whole_transitions(read_all(store)) == 2);
  disk.power_cut();
  CHECK(whole_transitions(read_all(store)) == 1);
  CHECK(read_all(store).loaded.now == Time{2});
}

TEST_CASE("memory store: a failed commit may have landed or not, and nothing works before reopen",
          "[store][memory]") {
  const auto [fault, expected] =
      GENERATE(std::pair(MemoryDisk::Fault::kLost, 1u), std::pair(MemoryDisk::Fault::kLanded, 2u));
  MemoryDisk disk;
  MemoryStore store(disk);
  REQUIRE(store.commit({a_header()}, Time{1}, true));
  REQUIRE(store.commit(transition(1), Time{2}, false));
  disk.fail_next(fault);
  const Result<> failed = store.commit(transition(2), Time{3}, false);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().reason == Reason::kStoreDegraded);
  CHECK_FALSE(store.commit(transition(3), Time{4}, false));
  CHECK_FALSE(store.flush());
  REQUIRE(store.reopen());
  CHECK(whole_transitions(read_all(store)) == expected);
}

TEST_CASE("memory store: a broken disk stays broken until it is mended", "[store][memory]") {
  MemoryDisk disk;
  MemoryStore store(disk);
  REQUIRE(store.commit({a_header()}, Time{1}, true));
  disk.fail(MemoryDisk::Fault::kLost);
  CHECK_FALSE(store.commit(transition(1), Time{2}, false));
  CHECK_FALSE(store.reopen());
  disk.mend();
  CHECK_FALSE(store.commit(transition(1), Time{2}, false));  // not before it was reopened
  REQUIRE(store.reopen());
  CHECK(store.commit(transition(1), Time{2}, false));
}

TEST_CASE("memory store: a moved disk says so until its header is written again",
          "[store][memory]") {
  MemoryDisk disk;
  MemoryStore store(disk);
  REQUIRE(store.commit({a_header()}, Time{1}, true));
  disk.set_moved();
  CHECK(read_all(store).loaded.moved);
  REQUIRE(store.commit({a_header(2)}, Time{1}, true));
  CHECK_FALSE(read_all(store).loaded.moved);
}

}  // namespace
}  // namespace berth
