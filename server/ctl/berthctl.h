// berthctl from the command line to the exit code, apart from main() so that tests run it in their
// own process against a console of theirs.
#pragma once

#include <string>
#include <vector>

#include "server/ctl/console.h"

namespace berth::ctl {

// `arguments` are those behind the program's name. Returns the exit code; see failure.h.
int run(const std::vector<std::string>& arguments, Console& console);

}  // namespace berth::ctl
