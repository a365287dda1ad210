// An operator at a shell: berthctl against the server of a cluster, as real processes. What it
// prints and its exit code are what a script would see.
#pragma once

#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/integration/cluster.h"

namespace berth::testing {

class Operator {
 public:
  explicit Operator(Cluster& cluster) : cluster_(cluster) {}

  // `command` in words, as typed.
  std::vector<std::string> arguments(const std::string& command) const {
    std::vector<std::string> arguments = {program("berthctl"), "--server",
                                          cluster_.server.address()};
    std::istringstream words(command);
    for (std::string word; words >> word;) arguments.push_back(word);
    return arguments;
  }
  Finished run(const std::string& command) { return run_to_end(arguments(command), fresh_log()); }
  std::string must(const std::string& command) {
    const Finished finished = run(command);
    INFO(command << ": " << finished.output);
    REQUIRE(finished.code == 0);
    return finished.output;
  }
  // Goes on beside the test.
  Process begin(const std::string& command) {
    return Process({.arguments = arguments(command), .log = fresh_log()});
  }

 private:
  std::string fresh_log() { return cluster_.path("berthctl-" + std::to_string(++runs_) + ".out"); }

  Cluster& cluster_;
  int runs_ = 0;
};

}  // namespace berth::testing
