// The command line as CLI11 reads it, behind plain values: which command, with which arguments,
// against which server, in which form. Built from the descriptions in command.h. The only code that
// knows CLI11.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/ctl/command.h"

namespace berth::ctl {

struct Invocation {
  const Command* command = nullptr;
  std::string path;  // "berthctl objects inspect"
  Arguments arguments;
  // As typed; empty when they were not given.
  std::string server;
  std::string timeout;
  std::string watch_seconds;
  Format format = Format::kTable;
};

// Reads what follows the program's name. When there is nothing to run (--help, --version, or a line
// that makes no sense) it has said so on the console, and the exit code is the answer.
tl::expected<Invocation, ExitCode> parse_command_line(const std::vector<std::string>& arguments,
                                                      Console& console);

}  // namespace berth::ctl
