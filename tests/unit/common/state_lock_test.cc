// One server per state directory.
#include "common/state_lock.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/common/child_process.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth {

TEST_CASE("a second taker of a state directory is told who holds it", "[common][state_lock]") {
  const testing::TemporaryDirectory state;
  const auto first = StateLock::take(state.path());
  REQUIRE(first.has_value());
  const auto second = StateLock::take(state.path());
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().reason == Reason::kStoreLocked);
  CHECK(second.error().message ==
        "state directory " + state.path() + ": in use by pid " + std::to_string(getpid()));
}

TEST_CASE("kill -9 of the holder frees the state directory at once", "[common][state_lock]") {
  const testing::TemporaryDirectory state;
  testing::Gate taken;
  testing::ChildProcess holder([&] {
    const auto lock = StateLock::take(state.path());
    if (lock) taken.open();
    pause();
  });
  taken.wait();
  const auto refused = StateLock::take(state.path());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("pid " + std::to_string(holder.pid())) != std::string::npos);
  holder.kill_hard();
  CHECK(StateLock::take(state.path()).has_value());
}

TEST_CASE("a stale lock file with a foreign pid does not block", "[common][state_lock]") {
  const testing::TemporaryDirectory state;
  std::ofstream(state.path() + "/" + kStateLockName) << "1234567890123\nleft over\n";
  const auto lock = StateLock::take(state.path());
  REQUIRE(lock.has_value());
  const auto second = StateLock::take(state.path());
  CHECK(second.error().message.find("pid " + std::to_string(getpid())) != std::string::npos);
}

TEST_CASE("a state directory that does not exist or is a file is refused by name",
          "[common][state_lock]") {
  const testing::TemporaryDirectory state;
  const auto missing = StateLock::take(state.path() + "/none");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message ==
        "cannot open directory \"" + state.path() + "/none\": No such file or directory");
  std::ofstream(state.path() + "/file") << "x";
  CHECK_FALSE(StateLock::take(state.path() + "/file").has_value());
}

}  // namespace berth
