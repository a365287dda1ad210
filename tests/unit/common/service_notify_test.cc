// The service manager's protocol, against a socket of our own.
#include "common/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

// Stands in for systemd: NOTIFY_SOCKET leads here.
class FakeManager {
 public:
  FakeManager() : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_.path() + "/notify";
    std::memcpy(address.sun_path, path.data(), path.size());
    REQUIRE(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~FakeManager() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }

  // The next message, or "" when there is none.
  std::string heard() const {
    char text[4096];
    const ssize_t length = recv(socket_.get(), text, sizeof text, 0);
    return length > 0 ? std::string(text, static_cast<size_t>(length)) : "";
  }

 private:
  testing::TemporaryDirectory directory_;
  UniqueFd socket_;
};

}  // namespace

TEST_CASE("each call sends its assignment to the manager", "[common][service_notify]") {
  const FakeManager manager;
  const ServiceNotify notify = ServiceNotify::from_environment();
  REQUIRE(notify.active());
  notify.extend_timeout(seconds(30));
  CHECK(manager.heard() == "EXTEND_TIMEOUT_USEC=30000000");
  notify.ready("serving epoch 3");
  CHECK(manager.heard() == "READY=1\nSTATUS=serving epoch 3");
  notify.status("12 pools");
  CHECK(manager.heard() == "STATUS=12 pools");
  notify.watchdog();
  CHECK(manager.heard() == "WATCHDOG=1");
  notify.stopping();
  CHECK(manager.heard() == "STOPPING=1");
  CHECK(manager.heard().empty());
}

TEST_CASE("a status cannot smuggle a second assignment", "[common][service_notify]") {
  const FakeManager manager;
  ServiceNotify::from_environment().status("a\nREADY=1");
  CHECK(manager.heard() == "STATUS=a READY=1");
}

TEST_CASE("the watchdog is fed twice in its interval, if it is meant for us",
          "[common][service_notify]") {
  const FakeManager manager;
  setenv("WATCHDOG_USEC", "10000000", 1);
  CHECK(ServiceNotify::from_environment().watchdog_every() == seconds(5));
}

TEST_CASE("a watchdog of another process is ignored", "[common][service_notify]") {
  const FakeManager manager;
  setenv("WATCHDOG_USEC", "10000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid() + 1).c_str(), 1);
  CHECK_FALSE(ServiceNotify::from_environment().watchdog_every().has_value());
}

TEST_CASE("a watchdog interval that is no number is ignored", "[common][service_notify]") {
  const FakeManager manager;
  setenv("WATCHDOG_USEC", "soon", 1);
  CHECK_FALSE(ServiceNotify::from_environment().watchdog_every().has_value());
}

TEST_CASE("children do not inherit the manager's socket", "[common][service_notify]") {
  const FakeManager manager;
  const ServiceNotify notify = ServiceNotify::from_environment();
  CHECK(std::getenv("NOTIFY_SOCKET") == nullptr);
}

TEST_CASE("outside a service nothing is sent and nothing fails", "[common][service_notify]") {
  unsetenv("NOTIFY_SOCKET");
  const ServiceNotify none = ServiceNotify::from_environment();
  CHECK_FALSE(none.active());
  none.ready("x");
  setenv("NOTIFY_SOCKET", "/nonexistent/notify", 1);
  const ServiceNotify unreachable = ServiceNotify::from_environment();
  CHECK_FALSE(unreachable.active());
  unreachable.watchdog();
}

}  // namespace berth
