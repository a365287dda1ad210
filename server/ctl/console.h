// Where berthctl writes, and what the place can do. Everything that differs between a terminal, a
// pipe and a test is here, so the rest of berthctl never asks the operating system.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>

#include "common/time.h"

namespace berth::ctl {

struct TerminalSize {
  size_t columns = 0;  // zero: unknown, or not a terminal
  size_t rows = 0;
};

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  // out is one: redraw, cut to its width
  bool colour = false;
  std::function<TerminalSize()> size;  // now: windows change
  // Lets the time pass; false when it is time to stop. Ctrl-C ends the process by itself.
  std::function<bool(Duration)> wait;
  std::function<std::optional<std::string>(const char* name)> environment;
};

// stdout and stderr of this process. Colour only on a terminal, and not when NO_COLOR is set or
// TERM is dumb.
Console process_console();

}  // namespace berth::ctl
