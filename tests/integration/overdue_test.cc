// Time-outs ask, proof frees: writers and readers that are stopped or slow past their deadline lose
// visibility and the right to finish, and keep their memory until they have said that they stopped.
#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

constexpr uint64_t kPage = 64 * kKiB;
constexpr uint64_t kPages = 16;

ServerTuning impatient() {
  ServerTuning tuning;
  tuning.write_within = seconds(1);
  return tuning;
}

WorkerTuning small_pool() {
  WorkerTuning tuning;
  tuning.pool_bytes = kPages * kPage;
  return tuning;
}

bool is_quarantined(Cluster& cluster, const WorkerProcess& worker, uint64_t pages) {
  return cluster.pool(worker).usage().quarantined_bytes() == pages * kPage;
}

}  // namespace

TEST_CASE("a writer that stalls past its deadline keeps its pages and may not finish",
          "[integration][FC-01][FC-11]") {
  Cluster cluster(impatient());
  WorkerProcess& worker = cluster.add_worker(small_pool());
  auto stalled = cluster.engine(worker, "engine-a");
  auto other = cluster.engine(worker, "engine-b");
  CHECK(stalled->must("begin s 1 0 8 65536").number("granted") == 8);
  stalled->must("write s 0 50");
  stalled->process().stop();

  REQUIRE(eventually([&] { return is_quarantined(cluster, worker, 8); }));
  const auto overdue = cluster.server.admin().reservations();
  REQUIRE(overdue.size() == 1);
  CHECK(overdue[0].quarantined());
  CHECK(cluster.server.admin().status().quarantined_bytes() == 8 * kPage);

  // Nothing of it is handed out: the other engine gets the other half of the pool and no more.
  const Reply filled = other->must("store 2 0 16 65536");
  CHECK(filled.number("committed") == 8);
  CHECK(filled.number("skipped_pool_full") == 8);
  CHECK(other->must("probe 1 0 8").number("usable") == 0);

  stalled->process().go_on();
  stalled->must("write s 50 100");  // a zombie: its pages are still its own
  const Reply finished = stalled->must("finish s");
  CHECK(finished.number("closed") == 8);
  CHECK(finished.number("committed") == 0);
  stalled->must("abort s");

  REQUIRE(eventually([&] { return cluster.allocated(worker) == 8 * kPage; }));
  other->must("load l 2 0 8");
  CHECK(other->must("verify l").number("wrong") == 0);
  other->must("release l");
  CHECK(stalled->must("store 1 0 8 65536").number("committed") == 8);
  REQUIRE(eventually([&] { return cluster.server.admin().reservations().empty(); }));
  CHECK(cluster.server.admin().check() == "");
}

TEST_CASE("a writer that never finishes is asked to stop and keeps its pages until it does",
          "[integration][FC-01]") {
  Cluster cluster(impatient());
  WorkerProcess& worker = cluster.add_worker(small_pool());
  auto slow = cluster.engine(worker, "engine-a");
  slow->must("begin s 1 0 4 65536");
  REQUIRE(eventually([&] { return slow->must("valid s").number("valid") == 0; }));
  CHECK(slow->must("stats").number("cancels") == 1);
  CHECK(is_quarantined(cluster, worker, 4));

  slow->must("abort s");
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 0; }));
  cluster.check_at_rest();
}

TEST_CASE("a lease that ran out while its reader stood still protects the bytes all the same",
          "[integration][FC-16]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker(small_pool());
  auto writer = cluster.engine(worker, "engine-a");
  auto reader = cluster.engine(worker, "engine-b");
  writer->must("store 1 0 8 65536");
  CHECK(reader->must("load l 1 0 8 500").number("chunks") == 8);
  reader->process().stop();
  std::vector<uint64_t> replicas;
  for (const auto& row : cluster.server.admin().objects(v1::REPLICA_STATE_READY))
    replicas.push_back(row.replica());
  CHECK(cluster.server.admin().evict(replicas) == 8);
  REQUIRE(eventually([&] {
    const auto leases = cluster.server.admin().leases();
    return leases.size() == 1 && leases[0].revoking();
  }));

  // As full as the pool gets, and none of it where the reader reads.
  CHECK(writer->must("store 2 0 16 65536").number("committed") == 8);
  reader->process().go_on();
  CHECK(reader->must("verify l").number("wrong") == 0);
  REQUIRE(eventually([&] { return reader->must("valid l").number("valid") == 0; }));
  CHECK(cluster.pool(worker).usage().retiring_bytes() == 8 * kPage);
  CHECK(reader->run("renew l 60000").number("renewed") == 0);

  reader->must("release l");
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 8 * kPage; }));
  cluster.check_at_rest();
}

TEST_CASE("a reader that renews in time keeps its protection", "[integration][FC-16]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker(small_pool());
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  engine->must("load l 1 0 8 5000");
  CHECK(engine->must("renew l 600000").number("renewed") == 1);
  CHECK(cluster.server.admin().leases().at(0).expires_in_ms() > 500'000);
  CHECK(engine->must("verify l").number("wrong") == 0);
  CHECK(engine->must("valid l").number("valid") == 1);
}

}  // namespace berth::testing
