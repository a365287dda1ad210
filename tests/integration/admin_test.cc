// What an operator does to a running fleet with berthctl: evicts, pins, drains, changes the policy
// and asks why; and what engines see of it.
#include <csignal>
#include <nlohmann/json.hpp>

#include "common/text.h"
#include "tests/integration/chunk_content.h"
#include "tests/integration/operator.h"

namespace berth::testing {
namespace {

using Catch::Contains;
using Json = nlohmann::json;

constexpr uint64_t kChunkBytes = 64 * kKiB;
constexpr const char* kSize = " 65536";

// One worker, one engine, eight chunks of chain 1.
struct Fleet {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  std::unique_ptr<Engine> engine = cluster.engine(worker, "engine-a");
  Operator user{cluster};

  Fleet() { CHECK(engine->must("store 1 0 8 65536").number("committed") == 8); }

  // The digest of a chunk of chain 1, as berthctl takes it.
  static std::string hex(uint64_t index) {
    const auto bytes = chain_digests(1, index, 1);
    return to_hex(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  uint64_t usable() { return engine->must("probe 1 0 8").number("usable"); }
  Json explain(uint64_t index) {
    return Json::parse(user.must("explain kv " + hex(index) + " --for engine-a --json"));
  }
  // What is allocated once every owner has acknowledged.
  bool settles_at(uint64_t chunks) {
    return eventually([&] { return cluster.allocated(worker) == chunks * kChunkBytes; });
  }
};

}  // namespace

TEST_CASE("an operator evicts by chunk, by namespace and a pool down to a size, and sees why",
          "[integration][admin]") {
  Fleet fleet;
  CHECK(fleet.explain(6)["hit"] == true);
  fleet.user.must("evict --namespace kv --digest " + fleet.hex(6) + " " + fleet.hex(7));
  CHECK(fleet.usable() == 6);
  REQUIRE(fleet.settles_at(6));
  const Json gone = fleet.explain(6);
  CHECK(gone["hit"] == false);
  CHECK(gone["miss_reason"] == "not_present");
  CHECK(gone["retired"][0]["reason"] == "evicted");
  const Finished again = fleet.user.run("evict --namespace kv --digest " + fleet.hex(6));
  CHECK(again.code == 1);
  CHECK_THAT(again.output, Contains("not_ready"));

  fleet.user.must("evict --pool w0/" + fleet.worker.pool() + " --to 128KiB");
  REQUIRE(eventually([&] { return fleet.cluster.allocated(fleet.worker) <= 2 * kChunkBytes; }));

  CHECK(fleet.user.run("evict --namespace kv --all").code == 2);
  fleet.user.must("evict --namespace kv --all --yes");
  CHECK(fleet.usable() == 0);
  REQUIRE(fleet.settles_at(0));
  REQUIRE(eventually([&] { return fleet.user.must("jobs").find("No jobs") == 0; }));
  CHECK(fleet.engine->must("store 1 0 8 65536").number("committed") == 8);
  CHECK(fleet.usable() == 8);
  fleet.cluster.check_at_rest();
}

TEST_CASE("a pinned prompt outlives an eviction and a trim, and goes when it is unpinned",
          "[integration][admin]") {
  Fleet fleet;
  fleet.user.must("pin kv " + fleet.hex(0) + " --hard");
  fleet.user.must("pin kv " + fleet.hex(1) + " --soft --ttl 1h");
  const Json pins = Json::parse(fleet.user.must("pins --json"))["pins"];
  REQUIRE(pins.size() == 2);
  CHECK(pins[0]["kind"] == "hard");
  CHECK(pins[1]["expires_in_ms"].get<int64_t>() > 0);
  const Finished kept = fleet.user.run("evict --namespace kv --digest " + fleet.hex(0));
  CHECK(kept.code == 1);
  CHECK_THAT(kept.output, Contains("pinned"));
  fleet.user.must("evict --pool w0/" + fleet.worker.pool() + " --to 0");
  REQUIRE(fleet.settles_at(2));
  CHECK(fleet.usable() == 2);
  fleet.user.must("unpin kv " + fleet.hex(0) + " " + fleet.hex(1));
  CHECK(fleet.user.run("unpin kv " + fleet.hex(0)).code == 1);
  fleet.user.must("evict --namespace kv --digest " + fleet.hex(0) + " " + fleet.hex(1));
  REQUIRE(fleet.settles_at(0));
  fleet.cluster.check_at_rest();
}

TEST_CASE("a drain goes on without the operator who started it, is shown again, and ends",
          "[integration][admin]") {
  Fleet fleet;
  fleet.engine->must("load l 1 0 2");
  Process watching = fleet.user.begin("drain w0 --wait");
  REQUIRE(eventually([&] { return watching.has_logged("2 retiring; 2 leased"); }));
  CHECK(fleet.usable() == 0);
  CHECK(fleet.engine->must("verify l").number("bad") == 0);
  CHECK_THAT(fleet.user.must("pools"), Contains("draining"));
  CHECK_THAT(fleet.user.must("usage"), Contains("pools are hidden because they drain"));
  CHECK_THAT(fleet.explain(0)["replicas"][0]["advice"].get<std::string>(),
             Contains("drains its pool") && Contains("1 lease keeps"));
  watching.signal(SIGINT);
  CHECK(watching.wait_for_end() == 128 + SIGINT);

  // The server goes on with it, also after kill -9; stores are skipped meanwhile.
  fleet.cluster.server.process().kill_hard();
  fleet.cluster.server.restart_after_kill();
  REQUIRE(eventually(
      [&] { return fleet.cluster.pool(fleet.worker).state() == v1::POOL_STATE_DRAINING; }));
  CHECK(fleet.engine->must(std::string("store 2 0 2") + kSize).number("committed") == 0);
  Process again = fleet.user.begin("drain w0/" + fleet.worker.pool() + " --wait");
  REQUIRE(eventually([&] { return again.has_logged("2 leased"); }));
  fleet.engine->must("release l");
  CHECK(again.wait_for_end() == 0);
  CHECK(fleet.cluster.allocated(fleet.worker) == 0);

  fleet.user.must("undrain w0");
  REQUIRE(eventually([&] {
    return fleet.engine->must(std::string("store 1 0 8") + kSize).number("committed") == 8;
  }));
  CHECK(fleet.usable() == 8);
  fleet.cluster.check_at_rest();
}

TEST_CASE("a policy that an operator sets holds across a kill of the server, until it is reset",
          "[integration][admin]") {
  Fleet fleet;
  const auto policy = [&] { return Json::parse(fleet.user.must("policy get --json")); };
  CHECK(policy()["from_configuration"] == true);
  fleet.user.must("policy set --policy s3fifo");
  fleet.user.must("policy set --high 50 --low 40");
  CHECK(fleet.user.run("policy set --low 60").code == 1);
  fleet.cluster.server.process().kill_hard();
  fleet.cluster.server.restart_after_kill();
  CHECK(policy()["policy"] == "s3fifo");
  CHECK(policy()["high_permille"] == 500);
  REQUIRE(eventually([&] { return !policy()["pools"].empty(); }));
  CHECK(policy()["pools"][0]["policy"] == "s3fifo");

  // A pool of 1024 pages settles between the new watermarks.
  REQUIRE(eventually([&] { return fleet.worker.is_ready(); }));
  REQUIRE(eventually([&] { return fleet.usable() == 8; }));
  fleet.engine->must(std::string("store 3 0 600") + kSize);
  REQUIRE(eventually([&] { return fleet.cluster.allocated(fleet.worker) <= 512 * kChunkBytes; }));
  CHECK(policy()["evicted_replicas"].get<uint64_t>() > 0);
  fleet.user.must("policy set --reset");
  CHECK(policy()["policy"] == "adaptive");
  fleet.cluster.check_at_rest();
}

}  // namespace berth::testing
