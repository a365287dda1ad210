// Several engines at once: over one key, over bytes that are still being written, over a pool that
// is too small, and over a server that has other things to do.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

constexpr uint64_t kPage = 64 * kKiB;

std::string store_command(uint64_t seed, uint64_t count) {
  return "store " + std::to_string(seed) + " 0 " + std::to_string(count) + " 65536";
}

// What the kernel holds for the memfds of a process.
uint64_t memfd_bytes(pid_t pid) {
  uint64_t bytes = 0;
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  std::vector<ino_t> seen;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    struct stat facts {};
    if (!target.starts_with("/memfd:") || stat(entry.path().c_str(), &facts) != 0) continue;
    if (std::count(seen.begin(), seen.end(), facts.st_ino)) continue;
    seen.push_back(facts.st_ino);
    bytes += static_cast<uint64_t>(facts.st_blocks) * 512;
  }
  return bytes;
}

}  // namespace

TEST_CASE("of two writers of one key one writes, and every reader sees whole bytes",
          "[integration][FC-08]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto a = cluster.engine(worker, "engine-a");
  auto b = cluster.engine(worker, "engine-b");
  auto reader = cluster.engine(worker, "engine-c");
  for (uint64_t round = 1; round <= 20; ++round) {
    const std::string seed = std::to_string(round);
    a->begin("begin s " + seed + " 0 4 65536");
    b->begin("begin s " + seed + " 0 4 65536");
    const Reply first = a->answer();
    const Reply second = b->answer();
    CHECK(first.number("granted") + second.number("granted") == 4);
    CHECK(first.number("being_written") + second.number("being_written") == 4);
    CHECK(reader->must("probe " + seed + " 0 4").number("usable") == 0);
    Engine& winner = first.number("granted") == 4 ? *a : *b;
    winner.must("write s 0 100");
    if (round % 4 == 0) {
      winner.must("abort s");
      CHECK(reader->must("probe " + seed + " 0 4").number("usable") == 0);
    } else {
      CHECK(winner.must("finish s").number("committed") == 4);
      reader->must("load l " + seed + " 0 4");
      CHECK(reader->must("verify l").number("wrong") == 0);
      reader->must("release l");
    }
  }
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 15 * 4 * kPage; }));
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  cluster.check_at_rest();
}

TEST_CASE("a writer that is killed frees the key for the one that waits", "[integration][FC-08]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto waiting = cluster.engine(worker, "engine-b");
  for (uint64_t round = 1; round <= 3; ++round) {
    auto victim = cluster.engine(worker, "engine-a");
    victim->must("begin s " + std::to_string(round) + " 0 4 65536");
    victim->must("write s 0 30");
    CHECK(waiting->must(store_command(round, 4)).number("being_written") == 4);
    victim->process().kill_hard();
    REQUIRE(eventually(
        [&] { return waiting->must(store_command(round, 4)).number("committed") == 4; }));
    waiting->must("load l " + std::to_string(round) + " 0 4");
    CHECK(waiting->must("verify l").number("wrong") == 0);
    waiting->must("release l");
  }
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  CHECK(cluster.allocated(worker) == 12 * kPage);
  cluster.check_at_rest();
}

TEST_CASE("bytes that are still being written are never handed to a reader",
          "[integration][FC-17]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto writer = cluster.engine(worker, "engine-a");
  auto first = cluster.engine(worker, "engine-b");
  auto second = cluster.engine(worker, "engine-c");
  uint64_t chunks_read = 0;
  for (uint64_t round = 1; round <= 4; ++round) {
    const std::string seed = std::to_string(round);
    for (Engine* reader : {first.get(), second.get()}) reader->begin("hammer " + seed + " 0 8 700");
    writer->must("begin s " + seed + " 0 8 65536");
    for (int percent = 0; percent < 100; percent += 10) {
      writer->must("write s " + std::to_string(percent) + " " + std::to_string(percent + 10));
      let_pass(milliseconds(20));
      CHECK(cluster.server.admin().objects(v1::REPLICA_STATE_READY).size() == 8 * (round / 2));
    }
    const bool commits = round % 2 == 1;
    writer->must(commits ? "finish s" : "abort s");
    for (Engine* reader : {first.get(), second.get()}) {
      const Reply read = reader->answer();
      CHECK(read.number("wrong") == 0);
      CHECK(read.number("loads") > 0);
      if (!commits) CHECK(read.number("chunks") == 0);
      chunks_read += read.number("chunks");
    }
  }
  CHECK(chunks_read > 0);
}

TEST_CASE("a pool never holds more than its capacity, whoever asks", "[integration][FC-35]") {
  Cluster cluster;
  WorkerTuning tiny;
  tiny.pool_bytes = 16 * kPage;
  WorkerProcess& worker = cluster.add_worker(tiny);
  std::vector<std::unique_ptr<Engine>> engines;
  for (int i = 0; i < 4; ++i)
    engines.push_back(cluster.engine(worker, "engine-" + std::to_string(i)));

  uint64_t committed = 0;
  uint64_t refused = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < engines.size(); ++i)
      engines[i]->begin(store_command(100 * round + i, 5));
    CHECK(cluster.allocated(worker) <= tiny.pool_bytes);
    CHECK(memfd_bytes(worker.process().pid()) <= tiny.pool_bytes);
    for (auto& engine : engines) {
      const Reply stored = engine->answer();
      committed += stored.number("committed");
      refused += stored.number("skipped_pool_full");
    }
  }
  // Room is made in the background, how often is a matter of timing.
  CHECK(committed >= 16);
  CHECK(committed + refused == 10 * 4 * 5);
  CHECK(cluster.allocated(worker) <= tiny.pool_bytes);
  CHECK(memfd_bytes(worker.process().pid()) == tiny.pool_bytes);
  cluster.check_at_rest();
}

TEST_CASE("a private pool serves one engine, whose copies keep nobody from storing",
          "[integration]") {
  Cluster cluster;
  WorkerTuning own;
  own.scope = "process";
  own.engine = "engine-a";
  WorkerProcess& worker = cluster.add_worker(own);
  WorkerProcess& shared = cluster.add_worker({.name = "w1"});
  auto owner = cluster.engine(worker, "engine-a");
  auto stranger = cluster.engine(worker, "engine-b");
  auto elsewhere = cluster.engine(shared, "engine-c");
  CHECK(owner->must(store_command(1, 4)).number("committed") == 4);
  CHECK(stranger->must("probe 1 0 4").number("usable") == 0);
  CHECK(stranger->must(store_command(1, 4)).number("skipped_no_pool") == 4);
  CHECK(elsewhere->must(store_command(1, 4)).number("committed") == 4);
  for (Engine* reader : {owner.get(), elsewhere.get()}) {
    reader->must("load l 1 0 4");
    CHECK(reader->must("verify l").number("wrong") == 0);
    reader->must("release l");
  }
  CHECK(cluster.allocated(worker) == 4 * kPage);
  CHECK(cluster.allocated(shared) == 4 * kPage);
  CHECK(cluster.server.admin().check() == "");
}

TEST_CASE("free bytes without a hole are refused as such, and a drained pool is whole again",
          "[integration][FC-62]") {
  Cluster cluster;
  WorkerTuning small;
  small.pool_bytes = 64 * kPage;
  WorkerProcess& worker = cluster.add_worker(small);
  auto engine = cluster.engine(worker, "engine-a");
  CHECK(engine->must(store_command(1, 64)).number("committed") == 64);
  std::vector<uint64_t> every_second;
  std::vector<uint64_t> rest;
  for (const auto& row : cluster.server.admin().objects(v1::REPLICA_STATE_READY))
    (row.offset() / kPage % 2 ? every_second : rest).push_back(row.replica());
  CHECK(cluster.server.admin().evict(every_second) == 32);
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 32 * kPage; }));

  CHECK(engine->must("store 2 0 1 131072").number("skipped_no_hole") == 1);
  REQUIRE(eventually([&] {
    const v1::PoolRow row = cluster.pool(worker);
    return row.free_bytes() == 32 * kPage && row.largest_hole_bytes() == kPage;
  }));
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 32 * kPage; }));

  CHECK(cluster.server.admin().evict(rest) == 32);
  REQUIRE(eventually([&] { return cluster.pool(worker).largest_hole_bytes() == 64 * kPage; }));
  CHECK(engine->must("store 3 0 1 4194304").number("committed") == 1);
  cluster.check_at_rest();
}

TEST_CASE("large batches and many watchers cost no worker its session", "[integration][FC-29]") {
  ServerTuning tuning;
  tuning.heartbeat_deadline = seconds(5);
  Cluster cluster(tuning);
  WorkerTuning wide;
  wide.page_bytes = 4 * kKiB;
  WorkerProcess& worker = cluster.add_worker(wide);
  auto engine = cluster.engine(worker, "engine-a");
  auto other = cluster.engine(worker, "engine-b");
  std::vector<std::unique_ptr<IdleWatch>> watchers;
  for (int i = 0; i < 60; ++i) watchers.push_back(cluster.server.admin().watch_idly());
  for (uint64_t round = 1; round <= 3; ++round) {
    engine->begin("store " + std::to_string(round) + " 0 4096 4096");
    other->begin("probe " + std::to_string(round) + " 0 4096");
    CHECK(cluster.server.admin().objects(v1::REPLICA_STATE_READY).size() <= round * 4096);
    CHECK(engine->answer().number("committed") == 4096);
    CHECK(other->answer().ok());
  }
  CHECK(cluster.server.admin().count_events("session_silent") == 0);
  CHECK(cluster.server.admin().count_events("session_detached") == 0);
  engine->must("load l 1 0 4096");
  CHECK(engine->must("verify l").number("wrong") == 0);
}

TEST_CASE("a long prefault keeps the worker's start apart from its session",
          "[integration][FC-29]") {
  ServerTuning tuning;
  tuning.heartbeat_deadline = seconds(1);
  Cluster cluster(tuning);
  WorkerTuning large;
  large.pool_bytes = 1024 * kMiB;
  WorkerProcess& worker = cluster.add_worker(large);
  CHECK(worker.is_ready());
  CHECK(cluster.server.admin().count_events("session_silent") == 0);
  CHECK(cluster.pool(worker).usage().backing_bytes() >= large.pool_bytes);
  CHECK(memfd_bytes(worker.process().pid()) == large.pool_bytes);
}

}  // namespace berth::testing
