#include "server/policy/ghosts.h"

#include <catch2/catch.hpp>

namespace berth::policy {
namespace {

TEST_CASE("a ghost is found once, with its code and stamp", "[policy][ghosts]") {
  Ghosts ghosts;
  CHECK_FALSE(ghosts.put(Ghost::of(7, 1234, 9), 1));
  const auto found = ghosts.take(7);
  REQUIRE(found);
  CHECK(found->code() == 9);
  CHECK(found->stamp(2000) == 1234);
  CHECK_FALSE(ghosts.take(7));
}

TEST_CASE("a ghost's stamp is read as the latest that it can be", "[policy][ghosts]") {
  const uint64_t stamp = (uint64_t{5} << Ghost::kStampBits) + 3;
  const Ghost ghost = Ghost::of(1, stamp, 1);
  CHECK(ghost.stamp(stamp) == stamp);
  CHECK(ghost.stamp(stamp + Ghost::kStampMask) == stamp);
  CHECK(ghost.stamp(stamp + Ghost::kStampMask + 1) > stamp);
}

TEST_CASE("a full set lets its oldest ghost give way", "[policy][ghosts]") {
  Ghosts ghosts;
  // The same fingerprint always falls into the same set.
  for (uint64_t stamp = 0; stamp < Ghosts::kWays; ++stamp)
    CHECK_FALSE(ghosts.put(Ghost::of(7, stamp, 1), 1));
  const auto displaced = ghosts.put(Ghost::of(7, 100, 1), 1);
  REQUIRE(displaced);
  CHECK(displaced->stamp(100) == 0);
  CHECK(ghosts.take(7)->stamp(100) == 100);
}

TEST_CASE("the table of ghosts grows with the residents and keeps what it holds",
          "[policy][ghosts]") {
  Ghosts ghosts;
  const size_t before = ghosts.memory_bytes();
  uint32_t kept = 0;
  for (uint32_t f = 1; f <= 1000; ++f) ghosts.put(Ghost::of(f, f, 1), 1);
  ghosts.put(Ghost::of(5000, 1, 1), Ghosts::kEntriesMin + 1);
  CHECK(ghosts.memory_bytes() == 2 * before);
  for (uint32_t f = 1; f <= 1000; ++f) {
    const auto ghost = ghosts.take(f);
    kept += ghost && ghost->stamp(5000) == f;
  }
  CHECK(kept == 1000);
}

}  // namespace
}  // namespace berth::policy
