// kill -9 of a worker: its successor proves the death by the life lock, and the memory that it left
// is charged until the last engine that mapped it let go.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

constexpr uint64_t kPage = 64 * kKiB;

uint64_t gone_bytes(Cluster& cluster) {
  uint64_t sum = 0;
  const v1::GetUsageResponse usage = cluster.server.admin().usage();
  for (const v1::NodeRow& node : usage.nodes()) sum += node.gone_bytes();
  return sum;
}

uint64_t count_workers(Cluster& cluster) {
  uint64_t count = 0;
  for (const v1::SessionRow& row : cluster.server.admin().sessions())
    count += row.role() == v1::ROLE_WORKER;
  return count;
}

bool has_rejoined(Engine& engine) {
  const Reply now = engine.must("stats");
  return now.number("joined") == 1 && now.number("joins") == 2;
}

}  // namespace

TEST_CASE("a killed worker's memory stays charged until the last engine unmapped it",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  engine->must("load l 1 0 8");
  engine->must("begin s 2 0 2 65536");
  const uint64_t backing = cluster.pool(worker).usage().backing_bytes();
  const uint64_t session = cluster.server.admin().session("engine-a")->session();

  worker.process().kill_hard();
  worker.start();
  CHECK(count_workers(cluster) == 1);
  REQUIRE(eventually([&] { return has_rejoined(*engine); }));
  CHECK(cluster.server.admin().session("engine-a")->session() == session);
  CHECK(cluster.server.admin().check() == "");

  // The old mapping is still the old bytes, and no longer vouched for.
  CHECK(gone_bytes(cluster) == backing);
  const Reply verified = engine->must("verify l");
  CHECK(verified.number("wrong") == 0);
  CHECK(verified.number("valid") == 0);
  CHECK(engine->must("valid s").number("valid") == 0);
  engine->must("write s 0 100");  // into the old memory, where it harms nobody
  CHECK(engine->run("finish s").number("committed") == 0);

  // The new pool starts empty; what is stored now lies in it and reads back.
  CHECK(engine->must("probe 1 0 8").number("usable") == 0);
  CHECK(engine->must("store 1 0 8 65536").number("committed") == 8);
  engine->must("load m 1 0 8");
  const Reply fresh = engine->must("verify m");
  CHECK(fresh.number("wrong") == 0);
  CHECK(fresh.number("valid") == 1);
  CHECK(engine->must("stats").number("spans_refused") == 0);

  engine->must("release l");
  engine->must("abort s");
  REQUIRE(eventually([&] { return gone_bytes(cluster) == 0; }));
  CHECK(cluster.server.admin().usage().pools_size() == 1);
  CHECK(engine->must("valid m").number("valid") == 1);
  engine->must("release m");
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  cluster.check_at_rest();
}

TEST_CASE("an engine that died with its worker holds no memory back", "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  engine->must("load l 1 0 8");
  const pid_t holder = engine->fork_holder();
  worker.process().kill_hard();
  engine->process().kill_hard();
  worker.start();
  REQUIRE(gone_bytes(cluster) > 0);  // the child of the engine still holds its life lock

  engine->kill_holder(holder);
  REQUIRE(eventually([&] { return gone_bytes(cluster) == 0; }));
  REQUIRE(eventually([&] { return !cluster.server.admin().session("engine-a"); }));
  cluster.check_at_rest();
}

TEST_CASE("a worker that stands still is hidden, and is back with everything it had",
          "[integration]") {
  ServerTuning tuning;
  tuning.heartbeat_deadline = seconds(1);
  Cluster cluster(tuning);
  WorkerProcess& worker = cluster.add_worker();
  WorkerProcess& other = cluster.add_worker({.name = "w1"});
  auto engine = cluster.engine(worker, "engine-a");
  auto neighbour = cluster.engine(other, "engine-b");
  engine->must("store 1 0 8 65536");
  engine->must("load l 1 0 8");

  worker.process().stop();
  REQUIRE(eventually([&] { return cluster.pool(worker).state() == v1::POOL_STATE_SILENT; }));
  CHECK(cluster.pool(worker).usage().ready_replicas() == 8);
  CHECK(cluster.server.admin().leases().size() == 1);
  CHECK(neighbour->must("store 2 0 8 65536").number("committed") == 8);
  const Reply verified = engine->must("verify l");  // in place, without anybody's help
  CHECK(verified.number("wrong") == 0);

  worker.process().go_on();
  REQUIRE(eventually([&] { return worker.is_ready(); }));
  REQUIRE(eventually([&] { return engine->must("probe 1 0 8").number("usable") == 8; }));
  CHECK(engine->must("begin again 1 0 8 65536").number("already_present") == 8);
  engine->must("release l");
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  cluster.check_at_rest();
}

TEST_CASE("server, workers and engines killed at one moment start again from a clean state",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  WorkerProcess& other = cluster.add_worker({.name = "w1"});
  {
    auto a = cluster.engine(worker, "engine-a");
    auto b = cluster.engine(other, "engine-b");
    a->must("store 1 0 8 65536");
    a->must("load l 1 0 8");
    b->must("begin s 2 0 8 65536");
    cluster.server.process().kill_hard();
    worker.process().kill_hard();
    other.process().kill_hard();
  }  // the engines too
  cluster.server.start();
  worker.start();
  other.start();
  REQUIRE(eventually([&] { return cluster.server.admin().sessions().size() == 2; }));
  REQUIRE(eventually([&] { return cluster.server.admin().usage().pools_size() == 2; }));
  CHECK(cluster.allocated(worker) == 0);
  CHECK(cluster.allocated(other) == 0);
  cluster.check_at_rest();
  auto again = cluster.engine(worker, "engine-a");
  CHECK(again->must("store 1 0 8 65536").number("committed") == 8);
}

TEST_CASE("a worker that crashes again and again leaves no ghosts", "[integration][FC-05]") {
  Cluster cluster;
  WorkerProcess& other = cluster.add_worker({.name = "w1"});
  auto engine = cluster.engine(other, "engine-b");
  engine->must("store 1 0 8 65536");
  WorkerProcess& worker = cluster.add_worker();
  for (int crash = 0; crash < 8; ++crash) {
    auto victim = cluster.engine(worker, "engine-a");
    victim->must("store 2 0 8 65536");
    victim->must("load l 2 0 8");
    worker.process().kill_hard();
    victim->process().kill_hard();
    worker.start();
  }
  REQUIRE(eventually([&] { return cluster.server.admin().sessions().size() == 3; }));
  REQUIRE(eventually([&] { return cluster.server.admin().usage().pools_size() == 2; }));
  CHECK(cluster.server.admin().objects(v1::REPLICA_STATE_READY).size() == 8);
  cluster.check_at_rest();
  engine->must("load l 1 0 8");
  CHECK(engine->must("verify l").number("wrong") == 0);
  // Life locks of the dead are unlinked; what is left belongs to the two workers, the engine, and
  // the pool that each worker passes to the other.
  REQUIRE(eventually([&] {
    size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(worker.runtime()))
      files += entry.path().extension() == ".life";
    return files <= 5;
  }));
}

TEST_CASE("a worker that stops gracefully leaves nothing charged", "[integration][FC-31]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  engine->must("load l 1 0 8");
  auto stalled = cluster.engine(worker, "engine-b");
  stalled->process().stop();  // holds its Join stream open and answers nothing

  worker.stop_gracefully();
  CHECK(engine->must("valid l").number("valid") == 0);
  engine->must("release l");

  stalled->process().go_on();
  worker.start();
  REQUIRE(eventually([&] { return has_rejoined(*engine) && has_rejoined(*stalled); }));
  REQUIRE(eventually([&] { return gone_bytes(cluster) == 0; }));
  CHECK(engine->must("store 1 0 8 65536").number("committed") == 8);
  cluster.check_at_rest();
}

TEST_CASE("the second live worker of one name is refused", "[integration][FC-14]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  const uint64_t session = cluster.server.admin().session("w0")->session();

  WorkerTuning twin;
  SECTION("in the same runtime directory") {}
  SECTION("in another runtime directory of the same node") { twin.runtime = "elsewhere"; }
  SECTION("on another node") {
    twin.runtime = "elsewhere";
    twin.node = "node-b";
  }
  const std::string config = cluster.path("twin.toml");
  std::filesystem::create_directory(worker_runtime(cluster.directory(), twin));
  write_file(config, worker_config(cluster.directory(), twin));
  const Finished second =
      run_to_end({program("berth-worker"), "--config", config}, cluster.path("twin.log"));
  CHECK(second.code == 3);
  CHECK_THAT(second.output, Catch::Contains("w0"));

  CHECK(worker.is_ready());
  CHECK(cluster.server.admin().session("w0")->session() == session);
  engine->must("load l 1 0 8");
  const Reply verified = engine->must("verify l");
  CHECK(verified.number("wrong") == 0);
  CHECK(verified.number("valid") == 1);
}

TEST_CASE("a worker's name is free for another node once an operator fenced the dead one",
          "[integration][FC-14]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  worker.process().kill_hard();
  WorkerTuning moved;
  moved.node = "node-b";
  moved.runtime = "elsewhere";
  const std::string config = cluster.path("moved.toml");
  std::filesystem::create_directory(worker_runtime(cluster.directory(), moved));
  write_file(config, worker_config(cluster.directory(), moved));
  CHECK(run_to_end({program("berth-worker"), "--config", config}, cluster.path("moved.log")).code ==
        3);

  const Finished fenced = run_to_end({program("berthctl"), "--server", cluster.server.address(),
                                      "fence", "--node", "node-a", "--reason", "the host is gone"},
                                     cluster.path("fence.log"));
  INFO(fenced.output);
  CHECK(fenced.code == 0);
  WorkerProcess& successor = cluster.add_worker(moved);
  CHECK(successor.is_ready());
  CHECK(gone_bytes(cluster) == 0);
}

}  // namespace berth::testing
