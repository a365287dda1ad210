// Starting, stopping and losing a process of our own.
#include "worker/replay/child_process.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "tests/unit/common/temporary_directory.h"

namespace berth::replay {
namespace {

using berth::testing::TemporaryDirectory;

TEST_CASE("a child's output goes to its log and its end is seen", "[replay][process]") {
  const TemporaryDirectory directory;
  ChildOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", "echo out; echo err >&2"};
  options.log = directory.path() + "/log";
  auto child = ChildProcess::start(options);
  REQUIRE(child);
  CHECK(child->wait_or_kill(seconds(60)));
  CHECK(child->has_ended());
  std::ifstream log(options.log);
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  CHECK(text == "out\nerr\n");
}

TEST_CASE("a child gets SIGTERM although this process blocks it", "[replay][process]") {
  sigset_t term;
  sigset_t before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, &before);
  ChildOptions options;
  options.program = "/bin/sleep";
  options.arguments = {"600"};
  auto child = ChildProcess::start(options);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  REQUIRE(child);
  CHECK_FALSE(child->has_ended());
  child->ask_to_stop();
  CHECK(child->wait_or_kill(seconds(60)));
}

TEST_CASE("a child that will not stop is killed", "[replay][process]") {
  ChildOptions options;
  options.program = "/bin/sleep";
  options.arguments = {"600"};
  auto child = ChildProcess::start(options);
  REQUIRE(child);
  CHECK_FALSE(child->wait_or_kill(milliseconds(1)));
  CHECK(child->has_ended());
}

TEST_CASE("a program that is not there is an error that names it", "[replay][process]") {
  ChildOptions options;
  options.program = "/nonexistent/berthd";
  const auto child = ChildProcess::start(options);
  REQUIRE_FALSE(child);
  CHECK(child.error().message.find("/nonexistent/berthd") != std::string::npos);
}

}  // namespace
}  // namespace berth::replay
