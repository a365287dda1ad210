#include <csignal>
#include <string>
#include <vector>

#include "server/ctl/berthctl.h"

int main(int argc, char** argv) {
  // A reader that closes our pipe is an ordinary end, found by the next write.
  std::signal(SIGPIPE, SIG_IGN);
  berth::ctl::Console console = berth::ctl::process_console();
  return berth::ctl::run(std::vector<std::string>(argv + 1, argv + argc), console);
}
