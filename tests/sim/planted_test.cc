// Every check of the simulator is shown to work: each bug planted on purpose is caught, by the
// check that is meant for it, within a bounded number of seeds.
#include <catch2/catch.hpp>

#include "tests/sim/world.h"

namespace berth::sim {
namespace {

// The rarest (a command of a Link that was taken over, carried out in the moment of the take-over)
// needs some hundred.
constexpr uint64_t kSeedsMax = 3000;

// A bug may first be noticed by the confusion that it causes; some seed must show it as what it is.
std::string failure_like(const PlantRow& row) {
  std::string other;
  for (uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.plant = row.plant;
    const RunResult result = run(options);
    if (result.failure.find(row.caught_as) != std::string::npos) return result.failure;
    if (!result.failure.empty()) other = result.failure;
  }
  return other;
}

TEST_CASE("every planted bug is caught by its check within a bounded number of seeds",
          "[sim][planted]") {
  const PlantRow row = GENERATE(from_range(kPlants.begin(), kPlants.end()));
  INFO("planted: " << row.name << ": " << row.what);
  REQUIRE_FALSE(row.caught_as.empty());
  CHECK_THAT(failure_like(row), Catch::Contains(std::string(row.caught_as)));
}

TEST_CASE("planted bugs have names of their own", "[sim][planted]") {
  for (const PlantRow& row : kPlants) {
    REQUIRE(plant_named(row.name).has_value());
    CHECK(*plant_named(row.name) == row.plant);
  }
  CHECK_FALSE(plant_named("no_such_bug").has_value());
}

}  // namespace
}  // namespace berth::sim
