// A graceful stop ends every open stream and is over well before a service manager would lose
// patience, whatever the peers do.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

// Ten seconds are promised and configured; the rest is for a busy machine.
constexpr Duration kStopWithin = seconds(30);

std::unique_ptr<Process> watch_events(Cluster& cluster, const std::string& name) {
  auto process = std::make_unique<Process>(ProcessOptions{
      .arguments = {program("berthctl"), "--server", cluster.server.address(), "events", "-f"},
      .log = cluster.path(name + ".log"),
      .stdio = Stdio::kPiped});
  return process;
}

uint64_t count_sessions(Cluster& cluster) { return cluster.server.admin().sessions().size(); }

}  // namespace

TEST_CASE("the server stops gracefully under open streams, one of whose readers stands still",
          "[integration][FC-31]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  auto reader = watch_events(cluster, "events-1");
  auto frozen = watch_events(cluster, "events-2");
  // Something happens that each of them has seen.
  engine->must("store 2 0 8 65536");
  for (Process* process : {reader.get(), frozen.get()}) {
    REQUIRE(eventually([&] {
      engine->must("probe 2 0 8");
      const Reply again = engine->must("load l 2 0 8");
      engine->must("release l");
      return process->read_line(milliseconds(50)).has_value() || !again.ok();
    }));
  }
  frozen->stop();

  cluster.server.stop_gracefully(kStopWithin);
  CHECK_FALSE(worker.process().has_ended());
  CHECK_FALSE(reader->has_ended());  // it follows, so it waits for the next server
  while (reader->read_line(milliseconds(100))) {
  }

  cluster.server.start();
  REQUIRE(eventually([&] { return engine->must("probe 1 0 8").number("usable") == 8; }));
  CHECK(count_sessions(cluster) == 2);
  CHECK(reader->read_line().has_value());
}

TEST_CASE("berthctl events -f ends at once when it is asked to", "[integration][FC-31]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto watcher = watch_events(cluster, "events");
  auto engine = cluster.engine(worker, "engine-a");
  REQUIRE(eventually([&] {
    engine->must("load l 1 0 8");
    engine->must("store 1 0 8 65536");
    return watcher->read_line(milliseconds(50)).has_value();
  }));
  SECTION("by SIGINT") { watcher->signal(SIGINT); }
  SECTION("by SIGTERM") { watcher->signal(SIGTERM); }
  CHECK(watcher->wait_for_end().has_value());
  CHECK(cluster.server.admin().is_serving());
}

TEST_CASE("a worker stops gracefully while the server is away", "[integration][FC-31]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 8 65536");
  cluster.server.process().stop();
  worker.stop_gracefully(kStopWithin);
  cluster.server.process().go_on();
  worker.start();
  REQUIRE(eventually([&] { return engine->must("stats").number("joins") == 2; }));
  CHECK(engine->must("store 1 0 8 65536").number("committed") == 8);
  cluster.check_at_rest();
}

}  // namespace berth::testing
