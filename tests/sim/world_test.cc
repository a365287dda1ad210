// The simulated world itself: what it promises about seeds and digests.
#include "tests/sim/world.h"

#include <catch2/catch.hpp>

namespace berth::sim {
namespace {

TEST_CASE("the same seed gives the same digest twice, and other seeds give others", "[sim]") {
  std::set<uint64_t> digests;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    RunOptions options;
    options.seed = seed;
    const RunResult result = run_twice(options);
    CHECK(result.failure == "");
    digests.insert(result.digest);
  }
  CHECK(digests.size() == 30);
}

TEST_CASE("a long run keeps every promise", "[sim]") {
  RunOptions options;
  options.seed = static_cast<uint64_t>(GENERATE(range(20'001, 20'011)));
  options.steps = 3000;
  INFO("berth-sim --seed " << options.seed << " --steps 3000 --trace");
  CHECK(run(options).failure == "");
}

TEST_CASE("most engines get something done in most worlds", "[sim]") {
  // A world in which nothing is stored would keep every promise.
  uint64_t commits = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    RunOptions options;
    options.seed = seed;
    commits += run(options).commits;
  }
  CHECK(commits > 30 * 40);
}

TEST_CASE("bytes change under readers that an operator fenced, are told of, and fail nothing",
          "[sim]") {
  uint64_t seen = 0;
  uint64_t seed = 30'000;
  for (; seen == 0 && seed < 33'000; ++seed) {
    RunOptions options;
    options.seed = seed;
    const RunResult result = run(options);
    REQUIRE(result.failure == "");
    seen += result.fenced_readers_saw_change;
  }
  CHECK(seen > 0);
}

}  // namespace
}  // namespace berth::sim
