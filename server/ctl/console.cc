#include "server/ctl/console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>

namespace berth::ctl {
namespace {

std::optional<std::string> environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

TerminalSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

bool wants_colour() {
  const std::string no_colour = environment_value("NO_COLOR").value_or("");
  const std::string terminal = environment_value("TERM").value_or("dumb");
  return no_colour.empty() && terminal != "dumb";
}

bool wait_for(Duration duration) {
  constexpr int64_t kMillisMax = std::numeric_limits<int>::max();
  ::poll(nullptr, 0, static_cast<int>(std::clamp<int64_t>(duration.millis, 0, kMillisMax)));
  // A reader that went away (`berthctl -w 1 usage | head`) ends the watch.
  return std::cout.good();
}

}  // namespace

Console process_console() {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  return {.out = std::cout,
          .err = std::cerr,
          .terminal = terminal,
          .colour = terminal && wants_colour(),
          .size = [terminal] { return terminal ? terminal_size() : TerminalSize{}; },
          .wait = wait_for,
          .environment = environment_value};
}

}  // namespace berth::ctl
