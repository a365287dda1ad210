#include "server/daemon.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "common/unique_fd.h"
#include "server/stop_guard.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth::testing {
namespace {

using Catch::Contains;

ServerConfig config_in(const std::string& directory, const std::string& http = "off") {
  const std::string text = "[server]\nlisten = [\"unix:" + directory +
                           "/berthd.sock\"]\nhttp = \"" + http + "\"\nstate_directory = \"" +
                           directory + "/state\"\n";
  auto file = Config::parse(text, "berthd.toml");
  ServerConfig config = read_server_config(*file, {});
  REQUIRE(file->finish());
  return config;
}

struct DaemonFixture {
  DaemonFixture() { std::filesystem::create_directory(directory.path() + "/state"); }

  TemporaryDirectory directory;
  // Nothing ever arrives on it.
  UniqueFd signals{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  ServiceNotify notify = ServiceNotify::from_environment();
};

// A page as a scraper gets it: status and body.
std::pair<int, std::string> get(const Address& from, const std::string& path) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(from.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  REQUIRE(send(socket.get(), request.data(), request.size(), 0) > 0);
  std::string text;
  char block[4096];
  for (ssize_t got = 0; (got = recv(socket.get(), block, sizeof block, 0)) > 0;)
    text.append(block, static_cast<size_t>(got));
  REQUIRE(text.size() > 12);
  return {std::stoi(text.substr(9, 3)), text.substr(text.find("\r\n\r\n") + 4)};
}

}  // namespace

TEST_CASE_METHOD(DaemonFixture, "a taken HTTP port refuses the start before the store is touched",
                 "[server][FC-56]") {
  MetricsRegistry registry;
  rpc::ServerHealth health;
  const SteadyClock clock;
  HttpEndpoint taken(registry, health);
  REQUIRE(taken.start(parse_address("http", "127.0.0.1:0").value(), clock));
  const std::string address = taken.address().text();
  Daemon daemon(config_in(directory.path(), address), notify, signals.get());
  const auto started = daemon.start();
  REQUIRE_FALSE(started);
  CHECK_THAT(started.error().message, Contains(address));
  CHECK(std::filesystem::is_empty(directory.path() + "/state"));
}

TEST_CASE_METHOD(DaemonFixture, "a taken gRPC address refuses the start and is named", "[server]") {
  Daemon first(config_in(directory.path()), notify, signals.get());
  REQUIRE(first.start());
  TemporaryDirectory other;
  std::filesystem::create_directory(other.path() + "/state");
  ServerConfig config = config_in(other.path());
  config.listeners[0].address.path = directory.path() + "/berthd.sock";
  Daemon second(std::move(config), notify, signals.get());
  const auto started = second.start();
  REQUIRE_FALSE(started);
  CHECK_THAT(started.error().message, Contains(directory.path() + "/berthd.sock"));
}

TEST_CASE_METHOD(DaemonFixture, "a state directory that is missing or in use is refused",
                 "[server]") {
  ServerConfig config = config_in(directory.path());
  config.state_directory += "/nowhere";
  Daemon lost(config, notify, signals.get());
  CHECK(lost.start().error().reason == Reason::kInvalidConfig);

  Daemon first(config_in(directory.path()), notify, signals.get());
  REQUIRE(first.start());
  config = config_in(directory.path());
  config.listeners[0].address.path += ".2";
  Daemon second(std::move(config), notify, signals.get());
  const auto started = second.start();
  CHECK(started.error().reason == Reason::kStoreLocked);
  CHECK_THAT(started.error().message, Contains("in use by pid"));
}

TEST_CASE_METHOD(DaemonFixture, "pages say whether it lives and whether it serves", "[server]") {
  MetricsRegistry registry;
  rpc::ServerHealth health;
  const SteadyClock clock;
  HttpEndpoint pages(registry, health);
  REQUIRE(pages.start(parse_address("http", "127.0.0.1:0").value(), clock));
  CHECK(get(pages.address(), "/healthz") == std::pair<int, std::string>(200, "alive\n"));
  CHECK(get(pages.address(), "/readyz").first == 503);
  CHECK(get(pages.address(), "/metrics").first == 503);
  CHECK(get(pages.address(), "/nothing").first == 404);
  pages.show_metrics();
  health.set_serving();
  CHECK(get(pages.address(), "/metrics").first == 200);
  CHECK(get(pages.address(), "/readyz") == std::pair<int, std::string>(200, "serving\n"));
  health.set_degraded("no space left on device");
  CHECK(get(pages.address(), "/readyz") ==
        std::pair<int, std::string>(503, "store_degraded: no space left on device\n"));
  health.set_stopping();
  health.set_serving();  // a stop is for good
  CHECK(get(pages.address(), "/readyz").first == 503);
  CHECK(get(pages.address(), "/healthz").first == 200);
}

TEST_CASE_METHOD(DaemonFixture, "every metric is in the manual, and nothing else is",
                 "[server][metrics]") {
  Daemon daemon(config_in(directory.path(), "127.0.0.1:0"), notify, signals.get());
  REQUIRE(daemon.start());
  std::set<std::string> served;
  std::istringstream text(get(daemon.http_address(), "/metrics").second);
  for (std::string line; std::getline(text, line);)
    if (line.rfind("# TYPE ", 0) == 0) served.insert(line.substr(7, line.find(' ', 7) - 7));
  std::set<std::string> documented;
  std::ifstream manual(std::string(BERTH_SOURCE_DIR) + "/docs/metrics.md");
  for (std::string line; std::getline(manual, line);) {
    if (line.rfind("## berth-worker", 0) == 0) break;
    if (line.rfind("| `", 0) != 0) continue;
    const size_t end = line.find_first_of("`{", 3);
    documented.insert(line.substr(3, end - 3));
  }
  CHECK(served == documented);
}

TEST_CASE("a stop that hangs ends the process the hard way", "[server][FC-31]") {
  const pid_t child = fork();
  if (child == 0) {
    const StopGuard guard(milliseconds(1));
    for (;;) pause();
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}

}  // namespace berth::testing
