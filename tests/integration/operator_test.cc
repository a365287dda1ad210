// berthctl against a real server: every view in every form, and what a script can tell from the
// exit code.
#include "tests/integration/operator.h"

#include <nlohmann/json.hpp>

#include "common/text.h"

namespace berth::testing {
namespace {

using Json = nlohmann::json;

}  // namespace

TEST_CASE("berthctl shows a running fleet as a table, as JSON and as CSV", "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  engine->must("load l 1 0 8");
  engine->must("begin s 2 0 2 65536");
  Operator user(cluster);
  for (const std::string view :
       {"status", "usage", "pools", "sessions", "namespaces", "objects", "leases", "events"}) {
    INFO(view);
    CHECK_FALSE(user.must(view).empty());
    CHECK_FALSE(user.must(view + " --csv").empty());
    const std::string json = user.must(view + " --json");
    // Events are one object a line, as many as there are.
    CHECK_NOTHROW(Json::parse(view == "events" ? json.substr(0, json.find('\n')) : json));
  }
  CHECK_THAT(user.must("pools"), Catch::Contains("w0-cpu") && Catch::Contains("live"));
  CHECK_THAT(user.must("sessions"), Catch::Contains("engine-a") && Catch::Contains("attached"));
  CHECK_THAT(user.must("usage --json"), Catch::Contains(std::to_string(8 * 65536)));
  CHECK_THAT(user.must("leases"), Catch::Contains("engine-a"));
  CHECK_THAT(user.must("namespaces"), Catch::Contains("kv"));
  user.must("check");
}

TEST_CASE("berthctl tells a server that is down from one that is empty", "[integration]") {
  Cluster cluster;
  Operator user(cluster);
  CHECK(user.run("usage").code == 0);
  CHECK(user.run("no-such-view").code == 2);
  cluster.server.process().kill_hard();
  const Finished down = user.run("usage");
  CHECK(down.code == 3);
  CHECK_THAT(down.output, Catch::Contains(cluster.server.address()));
}

TEST_CASE("an operator's fence ends a stuck engine's session and gives its bytes back",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("begin s 1 0 4 65536");
  engine->must("store 2 0 4 65536");
  engine->must("load l 2 0 4");
  const uint64_t session = cluster.server.admin().session("engine-a")->session();
  Operator user(cluster);
  CHECK(user.run("fence " + id_text(session)).code == 2);  // a reason is required
  // The operator's word counts as proof: nobody waits for the engine, which is told to stop.
  user.must("fence " + id_text(session) + " --reason stuck");
  REQUIRE(eventually([&] { return engine->must("valid l").number("valid") == 0; }));
  CHECK(engine->must("valid s").number("valid") == 0);
  engine->must("release l");
  engine->must("abort s");
  REQUIRE(eventually([&] { return cluster.allocated(worker) == 4 * 65536; }));
  REQUIRE(eventually([&] { return engine->must("stats").number("joins") == 2; }));
  CHECK(engine->must("store 1 0 4 65536").number("committed") == 4);
  cluster.check_at_rest();
}

}  // namespace berth::testing
