#include <catch2/catch.hpp>

#include "tests/unit/policy/pool_of.h"

namespace berth::policy {
namespace {

TEST_CASE("lfu_da lets go what was used least, among equals what was touched longest ago",
          "[policy][eviction]") {
  PoolOf pool(EvictionKind::kLfuDa, 8);
  CHECK(pool.requests({"abcd", "bd", "d"}).evict(4) == "acbd");
}

TEST_CASE("lfu_da lets old fame fade: each victim raises what new chunks start from",
          "[policy][eviction]") {
  PoolOf pool(EvictionKind::kLfuDa, 2);
  pool.requests({"a", "a", "a"});  // three uses, when the age was 0
  // b is the victim of c, c of d, ...: the age rises by one each time.
  pool.requests({"b", "c", "d", "e"});
  CHECK(pool.resident() == "de");
}

}  // namespace
}  // namespace berth::policy
