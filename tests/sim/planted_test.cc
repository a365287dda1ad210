// Every check of the simulator is shown to work: each bug planted on purpose is caught, within a
// bounded number of seeds.
#include <catch2/catch.hpp>

#include "tests/sim/world.h"

namespace berth::sim {
namespace {

// The rarest (a command of a Link that was taken over, carried out in the moment of the take-over)
// needs some hundred.
constexpr uint64_t kSeedsMax = 3000;

std::string first_failure(Plant plant) {
  for (uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    RunOptions options;
    options.seed = seed;
    options.plant = plant;
    if (const RunResult result = run(options); !result.failure.empty()) return result.failure;
  }
  return "";
}

TEST_CASE("every planted bug is caught within a bounded number of seeds", "[sim][planted]") {
  const PlantRow row = GENERATE(from_range(kPlants.begin(), kPlants.end()));
  INFO("planted: " << row.name << ": " << row.what);
  const std::string failure = first_failure(row.plant);
  INFO("caught as: " << failure);
  CHECK_FALSE(failure.empty());
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
