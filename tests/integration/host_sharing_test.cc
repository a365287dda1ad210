// Two workers of one host: engines of one read the HOST pool of the other in place, whoever dies
// meanwhile, and its memory is accounted for until the last of them has let go.
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

struct TwoWorkers {
  Cluster cluster;
  WorkerProcess& owner = cluster.add_worker({.name = "w0"});
  WorkerProcess& neighbour = cluster.add_worker({.name = "w1"});
  std::unique_ptr<Engine> writer = cluster.engine(owner, "writer");
  std::unique_ptr<Engine> reader = cluster.engine(neighbour, "reader");

  std::vector<v1::PoolExport> exports(const std::string& pool) {
    std::vector<v1::PoolExport> all;
    const v1::PoolRow row = cluster.server.admin().pool(pool);
    for (const v1::PoolExport& e : row.exports()) all.push_back(e);
    return all;
  }
  bool is_imported_by(const std::string& pool, const std::string& worker) {
    for (const v1::PoolExport& e : exports(pool))
      if (e.worker() == worker && e.imported()) return true;
    return false;
  }
  // Its engine maps a pool a little later than the worker imported it: until then it misses.
  bool reads(Engine& engine, int seed, uint64_t chunks) {
    const std::string chain = std::to_string(seed) + " 0 " + std::to_string(chunks);
    const bool is_there = engine.must("load try " + chain).number("chunks") == chunks;
    engine.must("release try");
    return is_there;
  }
  uint64_t gone_bytes() {
    uint64_t sum = 0;
    const v1::GetUsageResponse usage = cluster.server.admin().usage();
    for (const v1::NodeRow& node : usage.nodes()) sum += node.gone_bytes();
    return sum;
  }
  // Releases are heard in the background.
  void come_to_rest() {
    REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
    cluster.check_at_rest();
  }
  void share() {
    REQUIRE(eventually([&] { return is_imported_by("w0-cpu", "w1"); }));
    REQUIRE(eventually([&] { return is_imported_by("w1-cpu", "w0"); }));
  }
};

}  // namespace

TEST_CASE_METHOD(TwoWorkers, "an engine loads in place what an engine of another worker stored",
                 "[integration][sharing]") {
  share();
  CHECK(writer->must("store 1 0 8 65536").number("committed") == 8);
  REQUIRE(eventually([&] { return reads(*reader, 1, 8); }));
  CHECK(reader->must("probe 1 0 8").number("usable") == 8);
  reader->must("load l 1 0 8");
  const Reply verified = reader->must("verify l");
  CHECK(verified.number("wrong") == 0);
  CHECK(verified.number("valid") == 1);
  // It is not stored a second time, and nothing of it lies in the reader's own pool.
  CHECK(reader->must("store 1 0 8 65536").number("already_present") == 8);
  CHECK(cluster.allocated(neighbour) == 0);
  // The other way round too.
  CHECK(reader->must("store 2 0 4 65536").number("committed") == 4);
  REQUIRE(eventually([&] { return reads(*writer, 2, 4); }));

  // What it reads is not reclaimed before it lets go.
  std::vector<uint64_t> replicas;
  for (const v1::ReplicaRow& row : cluster.server.admin().objects(v1::REPLICA_STATE_READY))
    replicas.push_back(row.replica());
  REQUIRE(replicas.size() == 12);
  cluster.server.admin().evict(replicas);
  REQUIRE(eventually([&] { return cluster.allocated(neighbour) == 0; }));
  CHECK(cluster.allocated(owner) == 8 * 64 * kKiB);
  CHECK(reader->must("verify l").number("wrong") == 0);
  reader->must("release l");
  REQUIRE(eventually([&] { return cluster.allocated(owner) == 0; }));
  come_to_rest();
}

TEST_CASE_METHOD(TwoWorkers, "an engine that joins later, and one that leaves, need nobody's help",
                 "[integration][sharing]") {
  share();
  writer->must("store 1 0 4 65536");
  auto late = cluster.engine(neighbour, "late");
  REQUIRE(eventually([&] { return reads(*late, 1, 4); }));
  late->must("leave");
  CHECK(reads(*writer, 1, 4));
  CHECK(eventually([&] { return reads(*reader, 1, 4); }));
}

TEST_CASE_METHOD(
    TwoWorkers,
    "the owner is killed while a neighbour's engine reads: its bytes stay, and stay charged",
    "[integration][sharing]") {
  share();
  writer->must("store 1 0 8 65536");
  REQUIRE(eventually([&] { return reads(*reader, 1, 8); }));
  reader->must("load l 1 0 8");
  const uint64_t backing = cluster.pool(owner).usage().backing_bytes();

  writer->process().kill_hard();
  owner.process().kill_hard();
  owner.start();
  REQUIRE(eventually([&] { return gone_bytes() == backing; }));
  CHECK(cluster.server.admin().check() == "");
  const Reply verified = reader->must("verify l");
  CHECK(verified.number("wrong") == 0);
  CHECK(verified.number("valid") == 1);
  CHECK(reader->must("stats").number("joins") == 1);  // its own worker lives: nothing changed there
  CHECK(reader->must("probe 1 0 8").number("usable") == 0);

  reader->must("release l");
  REQUIRE(eventually([&] { return gone_bytes() == 0; }));
  // The successor's pool is shared like the first one.
  auto next = cluster.engine(owner, "next");
  next->must("store 3 0 4 65536");
  REQUIRE(eventually([&] { return reads(*reader, 3, 4); }, seconds(30)));
  come_to_rest();
}

TEST_CASE_METHOD(TwoWorkers, "an importer that is killed leaves the owner's pool as it was",
                 "[integration][sharing]") {
  share();
  writer->must("store 1 0 8 65536");
  REQUIRE(eventually([&] { return reads(*reader, 1, 8); }));
  reader->must("load l 1 0 8");
  neighbour.process().kill_hard();
  REQUIRE(eventually([&] { return !exports("w0-cpu").empty(); }));
  CHECK(reader->must("verify l").number("wrong") == 0);  // its engine maps the pool still
  CHECK(reads(*writer, 1, 8));
  reader->process().kill_hard();
  REQUIRE(eventually([&] { return exports("w0-cpu").empty(); }));
  neighbour.start();
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  REQUIRE(eventually([&] { return is_imported_by("w0-cpu", "w1"); }, seconds(30)));
  auto again = cluster.engine(neighbour, "again");
  REQUIRE(eventually([&] { return reads(*again, 1, 8); }));
  come_to_rest();
}

TEST_CASE_METHOD(TwoWorkers, "sharing goes on through a kill of the server",
                 "[integration][sharing]") {
  share();
  writer->must("store 1 0 8 65536");
  REQUIRE(eventually([&] { return reads(*reader, 1, 8); }));
  reader->must("load l 1 0 8");
  cluster.server.process().kill_hard();
  cluster.server.start();
  REQUIRE(eventually([&] { return owner.is_ready() && neighbour.is_ready(); }));
  REQUIRE(eventually([&] { return reads(*reader, 1, 8); }));
  const Reply verified = reader->must("verify l");
  CHECK(verified.number("wrong") == 0);
  CHECK(verified.number("valid") == 1);
  reader->must("release l");
  come_to_rest();
}

TEST_CASE("workers with other runtime directories, and private pools, share nothing",
          "[integration][sharing]") {
  Cluster cluster;
  WorkerProcess& owner = cluster.add_worker({.name = "w0"});
  WorkerProcess& apart = cluster.add_worker({.name = "w1", .runtime = "run-w1"});
  WorkerProcess& lonely = cluster.add_worker({.name = "w2", .scope = "process"});
  WorkerProcess& fourth = cluster.add_worker({.name = "w3"});
  auto writer = cluster.engine(owner, "a");
  auto other = cluster.engine(apart, "b");
  auto alone = cluster.engine(lonely, "a");
  auto sharer = cluster.engine(fourth, "d");
  const auto imported = [&](const std::string& pool) {
    std::string text;
    const v1::PoolRow row = cluster.server.admin().pool(pool);
    for (const v1::PoolExport& e : row.exports()) text += e.worker() + " ";
    return text;
  };
  writer->must("store 1 0 4 65536");
  alone->must("store 2 0 4 65536");
  // w2 imports too: its engine may read the others' HOST pools.
  REQUIRE(eventually([&] {
    const std::string of_w0 = imported("w0-cpu");
    return of_w0.find("w2") != std::string::npos && of_w0.find("w3") != std::string::npos;
  }));
  CHECK(imported("w0-cpu").find("w1") == std::string::npos);
  CHECK(imported("w2-cpu").empty());
  CHECK(other->must("probe 1 0 4").number("usable") == 0);
  CHECK(other->must("store 1 0 4 65536").number("committed") == 4);
  // Another owner's private copy neither hits nor suppresses a store.
  CHECK(sharer->must("probe 2 0 4").number("usable") == 0);
  CHECK(sharer->must("store 2 0 4 65536").number("committed") == 4);
}

TEST_CASE("one stream over two workers hits more when they share their HOST pools",
          "[integration][sharing]") {
  const auto hits = [](const std::string& scope) {
    TemporaryDirectory directory;
    const Finished run =
        run_to_end({program("berth-replay"), "--local", "--engines", "2", "--workers", "2",
                    "--routing", "round-robin", "--generate", "chat", "--requests", "600",
                    "--block-bytes", "4096", "--cpu-pool", "256MiB", "--scope", scope, "--json"},
                   directory.path() + "/replay.log", seconds(240));
    INFO(run.output);
    REQUIRE(run.code == 0);
    const size_t start = run.output.find('{');
    const auto report =
        nlohmann::json::parse(run.output.substr(start, run.output.rfind('}') - start + 1));
    CHECK(report.at("verify_errors") == 0);
    CHECK(report.at("load_errors") == 0);
    return report.at("prefix_hits").get<uint64_t>();
  };
  const uint64_t apart = hits("process");
  const uint64_t shared = hits("host");
  INFO("prefix hits: " << apart << " with private pools, " << shared << " with shared ones");
  CHECK(shared > apart);
}

}  // namespace berth::testing
