// The daemons under whatever starts them: a service manager (played by a socket), a shell script,
// nothing at all. They behave the same.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

// What a service manager hears.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path)
      : path_(path), socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof address.sun_path);
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

  std::string variable() const { return "NOTIFY_SOCKET=" + path_; }

  // Whether a message with this assignment arrives; those before it are dropped.
  bool hears(const std::string& assignment, Duration bound = kSoon) {
    return eventually(
        [&] {
          pollfd ready{socket_.get(), POLLIN, 0};
          if (poll(&ready, 1, 0) <= 0) return false;
          char buffer[4096];
          const ssize_t count = recv(socket_.get(), buffer, sizeof buffer, 0);
          const std::string message(buffer, static_cast<size_t>(count));
          return ("\n" + message + "\n").find("\n" + assignment + "\n") != std::string::npos;
        },
        bound);
  }

 private:
  std::string path_;
  UniqueFd socket_;
};

}  // namespace

TEST_CASE("a service manager hears that the server is ready, alive and stopping",
          "[integration][FC-65]") {
  TemporaryDirectory directory;
  NotifySocket manager(directory.path() + "/notify");
  ServerProcess server(directory.path(), {});
  server.environment = {manager.variable(), "WATCHDOG_USEC=400000"};
  server.launch();
  REQUIRE(manager.hears("READY=1"));
  CHECK(server.admin().is_serving());  // ready means that calls work
  for (int i = 0; i < 3; ++i) CHECK(manager.hears("WATCHDOG=1"));
  server.process().signal(SIGTERM);
  CHECK(manager.hears("STOPPING=1"));
  CHECK(server.process().wait_for_end().value_or(-1) == 0);
}

TEST_CASE("a service manager hears that the worker is ready, alive and stopping",
          "[integration][FC-65]") {
  Cluster cluster;
  NotifySocket manager(cluster.path("notify"));
  const WorkerTuning tuning;
  std::filesystem::create_directory(worker_runtime(cluster.directory(), tuning));
  write_file(cluster.path("w0.toml"), worker_config(cluster.directory(), tuning));
  Process worker({.arguments = {program("berth-worker"), "--config", cluster.path("w0.toml")},
                  .log = cluster.path("w0.log"),
                  .environment = {manager.variable(), "WATCHDOG_USEC=400000"}});
  REQUIRE(manager.hears("READY=1"));
  for (int i = 0; i < 3; ++i) CHECK(manager.hears("WATCHDOG=1"));
  Engine engine(worker_socket(cluster.directory(), tuning), "engine-a", cluster.path("e.log"));
  CHECK(engine.must("store 1 0 4 65536").number("committed") == 4);
  worker.signal(SIGTERM);
  CHECK(manager.hears("STOPPING=1"));
  const int code = worker.wait_for_end().value_or(-1);
  INFO(worker.log());
  CHECK(code == 0);
}

TEST_CASE("daemons in the background of a shell script serve and stop as in the foreground",
          "[integration][FC-32]") {
  TemporaryDirectory directory;
  const ServerTuning server_tuning{.http = Http::kAnyPort};
  const WorkerTuning worker_tuning;
  std::filesystem::create_directory(directory.path() + "/state");
  std::filesystem::create_directory(worker_runtime(directory.path(), worker_tuning));
  write_file(directory.path() + "/berthd.toml", server_config(directory.path(), server_tuning));
  write_file(directory.path() + "/w0.toml", worker_config(directory.path(), worker_tuning));
  write_file(directory.path() + "/start.sh",
             "cd /\n" + program("berthd") + " --config " + directory.path() +
                 "/berthd.toml </dev/null >" + directory.path() +
                 "/berthd.log 2>&1 &\nserver=$!\n" + program("berth-worker") + " --config " +
                 directory.path() + "/w0.toml </dev/null >" + directory.path() +
                 "/w0.log 2>&1 &\nworker=$!\n" +
                 "trap 'kill -TERM $worker; wait $worker; echo worker $?; kill -TERM $server;" +
                 " wait $server; echo server $?; exit 0' TERM\nwait $server\n");
  Process script({.arguments = {"/bin/sh", directory.path() + "/start.sh"},
                  .log = directory.path() + "/script.log"});
  Admin admin(server_address(directory.path()));
  WorkerProcess worker(directory.path(), admin, worker_tuning);
  REQUIRE(eventually([&] { return worker.is_ready(); }));
  Engine engine(worker.socket(), "engine-a", directory.path() + "/e.log");
  CHECK(engine.must("store 1 0 4 65536").number("committed") == 4);
  engine.must("load l 1 0 4");
  CHECK(engine.must("verify l").number("wrong") == 0);
  script.signal(SIGTERM);
  CHECK(script.wait_for_end().value_or(-1) == 0);
  CHECK_THAT(script.log(), Catch::Contains("worker 0") && Catch::Contains("server 0"));
}

}  // namespace berth::testing
