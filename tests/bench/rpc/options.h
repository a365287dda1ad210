// The command line of berth-bench, understood and checked: profiles are plans, and lists that are
// given take the place of the profile's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/rpc/plan.h"

namespace berth::bench {

struct Options {
  Plan plan;
  bool is_dry_run = false;                  // say what would be measured, and end
  bool json = false;                        // on standard output, instead of the table
  std::string output;                       // the JSON as a file, too
  std::vector<std::string> echo_addresses;  // not empty: be the echo server
};

struct ParsedOptions {
  Options options;
  std::optional<int> exit_code;  // set when there is nothing to do: --help, a wrong option
};

// Prints help and refusals itself.
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace berth::bench
