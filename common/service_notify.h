// What a daemon tells its service manager (the sd_notify protocol): ready, status, still alive,
// stopping. Outside a service every call does nothing. Thread-safe; never waits.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/time.h"
#include "common/unique_fd.h"

namespace berth {

class ServiceNotify {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which are meant for this process only:
  // they are taken out of the environment, so that a child does not speak in our name.
  static ServiceNotify from_environment();

  void ready(std::string_view status) const;
  void status(std::string_view text) const;
  void watchdog() const;
  void stopping() const;
  // Start-up or stop takes longer: count the time-out anew from now. For long recoveries.
  void extend_timeout(Duration by) const;

  // How often watchdog() is due: half of what the service manager waits. Nothing: no watchdog.
  std::optional<Duration> watchdog_every() const { return watchdog_every_; }
  bool active() const { return socket_.valid(); }

 private:
  ServiceNotify() = default;
  void send(std::string_view message) const;

  UniqueFd socket_;  // connected datagram socket; invalid outside a service
  std::optional<Duration> watchdog_every_;
};

}  // namespace berth
