// One server per state directory, and one state directory per store: a second server is refused, a
// crash leaves nothing in the way of the next start, a copy is known as a copy.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

// Another server's directory, with a configuration of its own beside it.
struct OtherServer {
  OtherServer() : process(directory.path(), ServerTuning()) {}
  TemporaryDirectory directory;
  ServerProcess process;
};

}  // namespace

TEST_CASE("a second server on the same state directory is refused and names the first",
          "[integration][FC-49]") {
  Cluster cluster;
  const std::string pid = std::to_string(cluster.server.process().pid());
  // Other listeners, so that nothing but the directory is in the way.
  TemporaryDirectory elsewhere;
  std::filesystem::create_directory_symlink(cluster.server.state_directory(),
                                            elsewhere.path() + "/state");
  const std::string config = elsewhere.path() + "/berthd.toml";
  write_file(config, server_config(elsewhere.path(), {}));
  const Finished second =
      run_to_end({program("berthd"), "--config", config}, elsewhere.path() + "/berthd.log");
  CHECK(second.code == 3);
  CHECK_THAT(second.output, Catch::Contains("in use by pid " + pid));
  CHECK(cluster.server.admin().is_serving());
  CHECK(cluster.server.admin().check() == "");
}

TEST_CASE("a server starts at once after kill -9 of the one before", "[integration][FC-49]") {
  Cluster cluster;
  const std::string store = cluster.server.admin().status().store().store_id();
  uint32_t epoch = cluster.server.admin().status().store().epoch();
  for (int i = 0; i < 3; ++i) {
    cluster.server.restart_after_kill();
    const v1::StoreIdentity now = cluster.server.admin().status().store();
    CHECK(now.store_id() == store);
    CHECK(now.epoch() > epoch);
    epoch = now.epoch();
  }
}

TEST_CASE("a copied state directory becomes another store, which trusts no worker of the first",
          "[integration][FC-49]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  const std::string store = cluster.server.admin().status().store().store_id();
  cluster.server.stop_gracefully();

  OtherServer copy;
  std::filesystem::copy(cluster.server.state_directory(), copy.process.state_directory(),
                        std::filesystem::copy_options::recursive);
  copy.process.start();
  CHECK(copy.process.admin().status().store().store_id() != store);
  const std::string log = copy.process.log();
  CHECK_THAT(log, Catch::Contains("copy") || Catch::Contains("copied"));
  // Whatever it knows of the first one's memory is hidden: no owner vouches for it.
  for (const auto& row : copy.process.admin().objects(v1::REPLICA_STATE_READY))
    CHECK_FALSE(row.readable());

  cluster.server.start();
  CHECK(cluster.server.admin().status().store().store_id() == store);
  REQUIRE(eventually([&] { return engine->must("probe 1 0 8").number("usable") == 8; }));
}

}  // namespace berth::testing
