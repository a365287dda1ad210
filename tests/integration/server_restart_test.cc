// kill -9, and a standstill, of berthd: the workers keep their processes and their memory, engines
// see misses for as long as it lasts, and everything that was READY is a hit again.
#include <catch2/catch.hpp>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

constexpr uint64_t kPage = 64 * kKiB;

bool is_hit(Engine& engine, const std::string& chain, uint64_t chunks) {
  return engine.must("probe " + chain).number("usable") == chunks;
}

// What a stall of the server must not touch: sessions, their incarnations aside, and replicas.
struct Standing {
  explicit Standing(Cluster& cluster) {
    for (const v1::SessionRow& row : cluster.server.admin().sessions())
      sessions.push_back(row.session());
    ready = cluster.server.admin().objects(v1::REPLICA_STATE_READY).size();
    leases = cluster.server.admin().leases().size();
    reservations = cluster.server.admin().reservations().size();
  }
  bool operator==(const Standing&) const = default;

  std::vector<uint64_t> sessions;
  size_t ready = 0;
  size_t leases = 0;
  size_t reservations = 0;
};

void survive_standstill(Duration heartbeat_deadline, Duration standstill) {
  ServerTuning tuning;
  tuning.heartbeat_deadline = heartbeat_deadline;
  tuning.write_within = standstill - seconds(1);
  tuning.lease_ttl = standstill - seconds(1);
  Cluster cluster(tuning);
  WorkerProcess& worker = cluster.add_worker();
  WorkerProcess& doomed = cluster.add_worker({.name = "w1"});
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("store 1 0 32 65536");
  engine->must("load l 1 0 32");
  engine->must("begin s 2 0 4 65536");
  engine->must("write s 0 100");
  const Standing before(cluster);

  cluster.server.process().stop();
  doomed.process().kill_hard();  // one that really dies meanwhile
  let_pass(standstill);
  CHECK(engine->must("valid l").number("valid") == 1);
  cluster.server.process().go_on();

  REQUIRE(eventually([&] { return is_hit(*engine, "1 0 32", 32); }));
  CHECK(engine->must("finish s").number("committed") == 4);
  CHECK(cluster.server.admin().count_events("session_fenced") == 0);
  CHECK(cluster.server.admin().count_events("retiring") == 0);
  CHECK(cluster.server.admin().count_events("write_overdue") == 0);
  CHECK(cluster.server.admin().count_events("lease_revoking") == 0);
  CHECK(cluster.server.admin().status().stall_ms() > 0);
  REQUIRE(eventually([&] {
    const auto row = cluster.server.admin().session("w1");
    return row && row->state() != v1::SESSION_STATE_ATTACHED;
  }));

  Standing after(cluster);
  CHECK(after.sessions == before.sessions);
  CHECK(after.ready == before.ready + 4);
  CHECK(after.leases == before.leases);
  const Reply verified = engine->must("verify l");
  CHECK(verified.number("wrong") == 0);
  CHECK(verified.number("valid") == 1);
  engine->must("release l");
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  cluster.check_at_rest();
}

}  // namespace

TEST_CASE("what was READY before kill -9 of the server is a hit after its restart",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  auto reader = cluster.engine(worker, "engine-b");
  CHECK(engine->must("store 1 0 64 65536").number("committed") == 64);
  reader->must("load l 1 0 64");
  const pid_t pid = worker.process().pid();
  const uint32_t epoch = cluster.server.admin().status().store().epoch();
  const Standing before(cluster);

  cluster.server.process().kill_hard();
  REQUIRE(eventually([&] { return engine->must("stats").number("server_reachable") == 0; }));
  const Reply missed = engine->must("probe 1 0 64");
  CHECK(missed.number("usable") == 0);
  CHECK(missed.word("miss") == "unavailable");
  CHECK(engine->must("store 3 0 4 65536").number("skipped_unavailable") == 4);
  CHECK(reader->must("verify l").number("wrong") == 0);
  CHECK(reader->must("valid l").number("valid") == 1);  // the worker protects it meanwhile

  cluster.server.start();
  REQUIRE(eventually([&] { return is_hit(*engine, "1 0 64", 64); }));
  CHECK_FALSE(worker.process().has_ended());
  CHECK(worker.process().pid() == pid);
  CHECK(cluster.server.admin().status().store().epoch() > epoch);
  CHECK(Standing(cluster) == before);
  CHECK(engine->must("begin again 1 0 64 65536").number("already_present") == 64);
  CHECK(cluster.allocated(worker) == 64 * kPage);
  CHECK(reader->must("valid l").number("valid") == 1);
  engine->must("load m 1 0 64");
  CHECK(engine->must("verify m").number("wrong") == 0);
  CHECK(engine->must("stats").number("joins") == 1);
  CHECK(cluster.server.admin().check() == "");
}

TEST_CASE("a store that was open when the server died can be finished after its restart",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  CHECK(engine->must("begin s 1 0 8 65536").number("granted") == 8);
  engine->must("write s 0 50");
  cluster.server.restart_after_kill();
  engine->must("write s 50 100");
  CHECK(engine->must("finish s").number("committed") == 8);
  CHECK(is_hit(*engine, "1 0 8", 8));
  cluster.check_at_rest();
}

TEST_CASE("a finish without an answer lands exactly once, whenever the server comes back",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  engine->must("begin s 1 0 8 65536");
  engine->must("write s 0 100");
  cluster.server.process().kill_hard();
  engine->begin("finish s");
  cluster.server.start();
  const Reply finished = engine->answer();
  // In time, or left to the library, which goes on until it knows.
  CHECK(finished.number("committed") + finished.number("unavailable") == 8);
  REQUIRE(eventually([&] { return is_hit(*engine, "1 0 8", 8); }));
  REQUIRE(eventually([&] { return cluster.server.admin().reservations().empty(); }));
  CHECK(cluster.allocated(worker) == 8 * kPage);
  CHECK(engine->must("stats").number("unsettled") == 0);
  cluster.check_at_rest();
}

TEST_CASE("a server that is killed again and again during stores loses and leaks nothing",
          "[integration]") {
  Cluster cluster;
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  uint64_t committed = 0;
  for (uint64_t round = 0; round < 6; ++round) {
    for (uint64_t i = 0; i < 4; ++i) {
      const Reply stored = engine->must("store " + std::to_string(10 * round + i) + " 0 16 65536");
      committed += stored.number("committed");
    }
    engine->begin("store " + std::to_string(10 * round + 4) + " 0 16 65536");
    cluster.server.restart_after_kill();
    committed += engine->answer().number("committed");
    REQUIRE(eventually([&] { return worker.is_ready(); }));
  }
  REQUIRE(eventually([&] { return cluster.server.admin().reservations().empty(); }));
  const uint64_t ready = cluster.server.admin().objects(v1::REPLICA_STATE_READY).size();
  CHECK(ready >= committed);
  CHECK(cluster.allocated(worker) == ready * kPage);
  for (uint64_t round = 0; round < 6; ++round) {
    engine->must("load l " + std::to_string(10 * round) + " 0 16");
    CHECK(engine->must("verify l").number("wrong") == 0);
    engine->must("release l");
  }
  REQUIRE(eventually([&] { return cluster.server.admin().leases().empty(); }));
  cluster.check_at_rest();
}

TEST_CASE("a server that stood still for twice the heartbeat deadline loses no live session",
          "[integration][FC-13]") {
  survive_standstill(seconds(3), seconds(6));
}

TEST_CASE("a server that stood still for thirty seconds loses no live session",
          "[integration][FC-13][.torture]") {
  survive_standstill(seconds(10), seconds(30));
}

}  // namespace berth::testing
