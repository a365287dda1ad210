// kill -9 of an engine at the worst moments. Its life lock is the proof: while anything that
// inherited it lives, nothing is freed; once nobody does, everything comes back by itself.
#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

constexpr uint64_t kPage = 64 * kKiB;
// The promise is two seconds after the last holder's death; five times that for a busy machine.
constexpr Duration kAfterDeath = seconds(10);
// Several times the interval at which the worker tests life locks.
constexpr Duration kManyTests = milliseconds(1500);

bool is_known(Cluster& cluster, const std::string& engine_id) {
  return cluster.server.admin().session(engine_id).has_value();
}

bool is_all_given_back(Cluster& cluster, const std::string& engine_id) {
  return cluster.server.admin().reservations().empty() && cluster.server.admin().leases().empty() &&
         !is_known(cluster, engine_id);
}

}  // namespace

TEST_CASE("an engine killed in the middle of a store leaves no reservation behind",
          "[integration][FC-01]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto writer = cluster.engine(worker, "engine-a");
  CHECK(writer->must("begin s 1 0 8 65536").number("granted") == 8);
  writer->must("write s 0 50");
  CHECK(cluster.pool(worker).usage().reserved_bytes() == 8 * kPage);

  writer->process().kill_hard();
  REQUIRE(eventually([&] { return is_all_given_back(cluster, "engine-a"); }, kAfterDeath));
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 0; }, kAfterDeath));
  cluster.check_at_rest();

  auto next = cluster.engine(worker, "engine-b");
  CHECK(next->must("probe 1 0 8").number("usable") == 0);
  CHECK(next->must("store 1 0 8 65536").number("committed") == 8);
  next->must("load l 1 0 8");
  CHECK(next->must("verify l").number("wrong") == 0);
}

TEST_CASE("an engine killed in the middle of a read leaves no lease behind",
          "[integration][FC-02]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto writer = cluster.engine(worker, "engine-a");
  auto reader = cluster.engine(worker, "engine-b");
  writer->must("store 1 0 8 65536");
  CHECK(reader->must("load l 1 0 8").number("chunks") == 8);
  CHECK(cluster.pool(worker).usage().leased_replicas() == 8);

  // Evicted under the reader: protected as long as it lives.
  std::vector<uint64_t> replicas;
  for (const auto& row : cluster.server.admin().objects(v1::REPLICA_STATE_READY))
    replicas.push_back(row.replica());
  CHECK(cluster.server.admin().evict(replicas) == 8);
  CHECK(cluster.pool(worker).usage().retiring_bytes() == 8 * kPage);
  CHECK(reader->must("verify l").number("wrong") == 0);

  reader->process().kill_hard();
  REQUIRE(eventually([&] { return is_all_given_back(cluster, "engine-b"); }, kAfterDeath));
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 0; }, kAfterDeath));
  cluster.check_at_rest();
  CHECK(is_known(cluster, "engine-a"));
}

TEST_CASE("what a killed engine held stays as long as a child of it lives",
          "[integration][FC-01]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 4 65536");
  engine->must("load l 1 0 4");
  engine->must("begin s 2 0 4 65536");
  const pid_t holder = engine->fork_holder();

  engine->process().kill_hard();
  let_pass(kManyTests);
  CHECK(is_known(cluster, "engine-a"));
  CHECK(cluster.server.admin().reservations().size() == 1);
  CHECK(cluster.server.admin().leases().size() == 1);
  CHECK(cluster.allocated(worker) == 8 * kPage);

  engine->kill_holder(holder);
  REQUIRE(eventually([&] { return is_all_given_back(cluster, "engine-a"); }, kAfterDeath));
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 4 * kPage; }, kAfterDeath));
  cluster.check_at_rest();
}

TEST_CASE("an engine that died while the server was away is found dead when it is back",
          "[integration][FC-01]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 4 65536");
  engine->must("load l 1 0 4");
  engine->must("begin s 2 0 4 65536");

  cluster.server.process().kill_hard();
  engine->process().kill_hard();
  cluster.server.start();
  REQUIRE(eventually([&] { return is_all_given_back(cluster, "engine-a"); }));
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 4 * kPage; }));
  REQUIRE(eventually([&] { return worker.is_ready(); }));
  cluster.check_at_rest();
}

TEST_CASE("an engine that leaves gives everything back and may be followed by one of its name",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 4 65536");
  engine->must("load l 1 0 4");
  CHECK(engine->run("leave").reason() == "still_mapped");
  engine->must("release l");
  engine->must("leave");
  REQUIRE(eventually([&] { return !is_known(cluster, "engine-a"); }));
  cluster.check_at_rest();

  auto next = cluster.engine(worker, "engine-a");
  next->must("load l 1 0 4");
  CHECK(next->must("verify l").number("wrong") == 0);
}

}  // namespace berth::testing
