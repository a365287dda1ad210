// Where the operating system says no: descriptors used up, a port that is taken, peers that read
// slowly. And the figures that an operator goes by: they agree with the directory.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>

#include "tests/integration/cluster.h"
#include "tests/integration/http.h"

namespace berth::testing {
namespace {

UniqueFd connect_unix(const std::string& address) {
  const std::string path = address.substr(std::string("unix:").size());
  UniqueFd peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  if (connect(peer.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return {};
  return peer;
}

// A port of 127.0.0.1 that somebody else listens at.
struct TakenPort {
  TakenPort() : listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    auto* address = reinterpret_cast<sockaddr*>(&name);
    REQUIRE(bind(listener.get(), address, length) == 0);
    REQUIRE(listen(listener.get(), 1) == 0);
    REQUIRE(getsockname(listener.get(), address, &length) == 0);
    port = ntohs(name.sin_port);
  }
  UniqueFd listener;
  uint16_t port = 0;
};

}  // namespace

TEST_CASE("running out of descriptors refuses connections and no directory write",
          "[integration][FC-28]") {
  TemporaryDirectory directory;
  ServerProcess server(directory.path(), {});
  server.descriptors_max = 256;
  server.start();
  WorkerProcess worker(directory.path(), server.admin(), {});
  worker.start();
  Engine engine(worker.socket(), "engine-a", directory.path() + "/engine-a.log");
  CHECK(engine.must("store 1 0 16 65536").number("committed") == 16);

  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 400; ++i) crowd.push_back(connect_unix(server.address()));
  for (uint64_t round = 2; round < 12; ++round) {
    const Reply stored = engine.must("store " + std::to_string(round) + " 0 16 65536");
    CHECK(stored.number("committed") == 16);
  }
  CHECK(server.admin().check() == "");
  CHECK_FALSE(server.process().has_ended());

  crowd.clear();
  // Without a restart: somebody new gets through, and the store is whole.
  Admin late(server.address());
  REQUIRE(eventually([&] { return late.is_serving(); }));
  CHECK(late.status().health() == v1::HEALTH_SERVING);
  CHECK(late.objects(v1::REPLICA_STATE_READY).size() == 11 * 16);
  server.restart_after_kill();
  CHECK(server.admin().objects(v1::REPLICA_STATE_READY).size() == 11 * 16);
}

TEST_CASE("too few descriptors are refused at start, naming the need", "[integration][FC-28]") {
  TemporaryDirectory directory;
  ServerProcess server(directory.path(), {});
  server.descriptors_max = 100;
  server.launch();
  const auto code = server.process().wait_for_end();
  REQUIRE(code);
  CHECK(*code != 0);
  CHECK_THAT(server.log(), Catch::Contains("128"));
}

TEST_CASE("a metrics port that is taken stops the start before the store is touched",
          "[integration][FC-56]") {
  TemporaryDirectory directory;
  const TakenPort taken;
  const std::string address = "127.0.0.1:" + std::to_string(taken.port);
  ServerProcess server(directory.path(), {.http_listen = address});
  server.launch();
  const auto code = server.process().wait_for_end();
  REQUIRE(code);
  CHECK(*code > 0);
  CHECK(*code < 128);  // a refusal, not an abort
  CHECK_THAT(server.log(), Catch::Contains(address));
  for (const auto& entry : std::filesystem::directory_iterator(server.state_directory()))
    CHECK(entry.path().filename() == "berthd.lock");  // at most
}

TEST_CASE("scrapers that read nothing delay no call and no other scraper", "[integration][FC-56]") {
  Cluster cluster({.http = Http::kAnyPort});
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  const uint16_t port = cluster.server.http_port();
  std::vector<UniqueFd> stuck;
  for (int i = 0; i < 50; ++i) {
    stuck.push_back(connect_to(port));
    REQUIRE(stuck.back().valid());
    const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // Half of them do not even finish their question.
    send(stuck.back().get(), request.data(), request.size() / (1 + i % 2), MSG_NOSIGNAL);
  }
  for (uint64_t round = 1; round <= 5; ++round) {
    CHECK(engine->must("store " + std::to_string(round) + " 0 16 65536").number("committed") == 16);
    CHECK(http_get(port, "/healthz").status == 200);
    CHECK(scrape(port).size() > 10);
  }
  CHECK(http_get(port, "/readyz").status == 200);
  CHECK(http_get(port, "/nothing").status == 404);
}

TEST_CASE("gauges say at rest what the directory says", "[integration][FC-53]") {
  Cluster cluster({.http = Http::kAnyPort});
  WorkerProcess& worker = cluster.add_worker();
  auto engine = cluster.engine(worker, "engine-a");
  const uint16_t port = cluster.server.http_port();
  const auto check_gauges = [&] {
    const v1::PoolUsage usage = cluster.pool(worker).usage();
    const v1::GetStatusResponse status = cluster.server.admin().status();
    const Metrics metrics = scrape(port);
    for (const auto& [series, value] : metrics) {
      INFO(series);
      CHECK(value >= 0);
      CHECK(value < 1e18);  // no wrapped negative
    }
    INFO(usage.ShortDebugString());
    const auto gauge = [&](const std::string& series) {
      INFO(series);
      REQUIRE(metrics.count(series) == 1);
      return static_cast<uint64_t>(metrics.at(series));
    };
    const auto allocated = [&](const std::string& state) {
      return gauge("berth_allocated_bytes{medium=\"cpu\",state=\"" + state + "\"}");
    };
    CHECK(allocated("reserved") == usage.reserved_bytes());
    CHECK(allocated("ready") == usage.ready_allocated_bytes());
    CHECK(allocated("retiring") == usage.retiring_bytes());
    CHECK(allocated("quarantined") == usage.quarantined_bytes());
    CHECK(gauge("berth_ready_bytes{medium=\"cpu\"}") == usage.ready_bytes());
    CHECK(gauge("berth_capacity_bytes{medium=\"cpu\"}") == usage.capacity_bytes());
    CHECK(gauge("berth_backing_bytes{medium=\"cpu\"}") == usage.backing_bytes());
    CHECK(gauge("berth_leased_replicas{medium=\"cpu\"}") == usage.leased_replicas());
    CHECK(gauge("berth_leases") == status.leases());
    CHECK(gauge("berth_reservations") == status.reservations());
    CHECK(gauge("berth_objects") == status.objects());
    CHECK(gauge("berth_epoch") == status.store().epoch());
    CHECK(gauge("berth_stall_seconds_total") == status.stall_ms() / 1000);
    CHECK(gauge("berth_sessions{role=\"client\",state=\"attached\"}") == status.clients());
    CHECK(gauge("berth_largest_hole_bytes{medium=\"cpu\"}") <= usage.capacity_bytes());
  };
  check_gauges();
  engine->must("store 1 0 32 65536");
  engine->must("begin s 2 0 8 65536");
  engine->must("load l 1 0 32");
  check_gauges();
  engine->must("abort s");
  REQUIRE(eventually([&] { return cluster.pool(worker).usage().reserved_bytes() == 0; }));
  check_gauges();
  cluster.server.restart_after_kill();
  REQUIRE(eventually([&] { return worker.is_ready(); }));
  const uint16_t after = cluster.server.http_port();
  CHECK(scrape(after).size() > 10);
}

}  // namespace berth::testing
