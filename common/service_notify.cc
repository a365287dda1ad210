#include "common/service_notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace berth {
namespace {

// Reads a variable and removes it.
std::optional<std::string> take_variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string text(value);
  unsetenv(name);
  return text;
}

std::optional<int64_t> number_of(const std::optional<std::string>& text) {
  int64_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

// "/run/systemd/notify", or "@name" in the abstract name space. Invalid when it cannot be reached.
UniqueFd connect_notify(const std::string& path) {
  sockaddr_un address{};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return UniqueFd();
  if (path[0] != '/' && path[0] != '@') return UniqueFd();
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) fd.reset();
  return fd;
}

// A status is one line; a newline in it would start another assignment.
std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 512));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return line;
}

}  // namespace

ServiceNotify ServiceNotify::from_environment() {
  ServiceNotify notify;
  const auto path = take_variable("NOTIFY_SOCKET");
  const auto watchdog_micros = number_of(take_variable("WATCHDOG_USEC"));
  const auto watchdog_pid = number_of(take_variable("WATCHDOG_PID"));
  if (path) notify.socket_ = connect_notify(*path);
  const bool for_us = !watchdog_pid || *watchdog_pid == getpid();
  if (notify.active() && for_us && watchdog_micros && *watchdog_micros >= 2000)
    notify.watchdog_every_ = Duration{*watchdog_micros / 2000};
  return notify;
}

void ServiceNotify::ready(std::string_view status) const {
  send("READY=1\nSTATUS=" + one_line(status));
}
void ServiceNotify::status(std::string_view text) const { send("STATUS=" + one_line(text)); }
void ServiceNotify::watchdog() const { send("WATCHDOG=1"); }
void ServiceNotify::stopping() const { send("STOPPING=1"); }
void ServiceNotify::extend_timeout(Duration by) const {
  send("EXTEND_TIMEOUT_USEC=" + std::to_string(by.millis * 1000));
}

void ServiceNotify::send(std::string_view message) const {
  if (!active()) return;
  // A manager that does not read is its own problem: we neither wait nor fail.
  (void)::send(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace berth
