// Long work that a kill interrupts: what it means is seen at once, it goes on from its cursor in
// the next run of the server, and it ends. Slices are as small as they get, so that there is a
// middle.
#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

constexpr uint64_t kPage = 4 * kKiB;
constexpr uint64_t kChains = 16;
constexpr uint64_t kChunks = 512;  // of each
constexpr uint64_t kHeld = 16;     // read all the while

// A pool full of chains, and a reader that holds the start of the first one.
struct Fleet {
  Fleet() : cluster(in_small_slices()), worker(cluster.add_worker(wide())) {
    engine = cluster.engine(worker, "engine-a");
    reader = cluster.engine(worker, "engine-b");
    for (uint64_t chain = 1; chain <= kChains; ++chain)
      REQUIRE(engine->must("store " + std::to_string(chain) + " 0 512 4096").number("committed") ==
              kChunks);
    REQUIRE(reader->must("load l 1 0 16").number("chunks") == kHeld);
  }

  static ServerTuning in_small_slices() {
    ServerTuning tuning;
    tuning.slice_records = 1;
    return tuning;
  }
  static WorkerTuning wide() {
    WorkerTuning tuning;
    tuning.page_bytes = kPage;
    tuning.pool_bytes = 2 * kChains * kChunks * kPage;
    return tuning;
  }

  bool is_unseen() {
    for (uint64_t chain = 1; chain <= kChains; ++chain)
      if (engine->must("probe " + std::to_string(chain) + " 0 512").number("usable") > 0)
        return false;
    return true;
  }

  // Kills the server once the job has done something, and not all.
  void kill_in_the_middle() {
    Admin& admin = cluster.server.admin();
    uint64_t done = 0;
    REQUIRE(eventually([&] {
      const auto jobs = admin.jobs();
      if (jobs.empty()) return true;
      done = jobs[0].done();
      return done > 0;
    }));
    cluster.server.process().kill_hard();
    REQUIRE(done > 0);
    REQUIRE(done < kChains * kChunks);
    cluster.server.start();
    REQUIRE(eventually([&] { return worker.is_ready() || is_draining(); }));
  }
  bool is_draining() { return cluster.pool(worker).state() == v1::POOL_STATE_DRAINING; }
  bool is_only_held_left() { return cluster.allocated(worker) == kHeld * kPage; }

  void read_and_release() {
    CHECK(reader->must("verify l").number("wrong") == 0);
    CHECK(reader->must("valid l").number("valid") == 1);
    reader->must("release l");
    REQUIRE(eventually([&] { return cluster.allocated(worker) == 0; }));
  }

  Cluster cluster;
  WorkerProcess& worker;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Engine> reader;
};

}  // namespace

TEST_CASE("an eviction of a namespace that a kill interrupts goes on and ends", "[integration]") {
  Fleet fleet;
  Admin& admin = fleet.cluster.server.admin();
  admin.evict_namespace("kv");
  CHECK(fleet.is_unseen());
  fleet.kill_in_the_middle();
  CHECK(fleet.is_unseen());
  REQUIRE(eventually([&] { return admin.jobs().empty(); }));
  REQUIRE(eventually([&] { return fleet.is_only_held_left(); }));
  fleet.read_and_release();
  fleet.cluster.check_at_rest();
  // What comes later is not meant.
  CHECK(fleet.engine->must("store 1 0 512 4096").number("committed") == kChunks);
  CHECK(fleet.engine->must("probe 1 0 512").number("usable") == kChunks);
}

TEST_CASE("a drain that a kill interrupts goes on and ends with the last page", "[integration]") {
  Fleet fleet;
  Admin& admin = fleet.cluster.server.admin();
  admin.drain(fleet.worker.pool());
  CHECK(fleet.is_unseen());
  fleet.kill_in_the_middle();
  CHECK(fleet.is_draining());
  CHECK(fleet.is_unseen());
  CHECK(fleet.engine->must("store 99 0 8 4096").number("committed") == 0);
  REQUIRE(eventually([&] { return fleet.is_only_held_left(); }));
  CHECK(admin.jobs().size() == 1);  // not before the reader is done
  fleet.read_and_release();
  REQUIRE(eventually([&] { return admin.jobs().empty(); }));
  CHECK(fleet.is_draining());
  fleet.cluster.check_at_rest();
  admin.undrain(fleet.worker.pool());
  CHECK(fleet.engine->must("store 1 0 512 4096").number("committed") == kChunks);
  CHECK(fleet.engine->must("probe 1 0 512").number("usable") == kChunks);
}

}  // namespace berth::testing
