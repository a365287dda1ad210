#include <catch2/catch.hpp>

#include "tests/unit/policy/pool_of.h"

namespace berth::policy {
namespace {

TEST_CASE("lru lets go what was touched longest ago, in the order of the touches",
          "[policy][eviction]") {
  struct Row {
    std::vector<std::string> requests;
    std::string gone;
  };
  const Row rows[] = {
      {{"abc"}, "abc"},
      {{"abc", "a"}, "bca"},
      {{"ab", "cd", "ab"}, "cdab"},
      {{"abcd", "bd", "c"}, "abdc"},
  };
  for (const Row& row : rows) {
    PoolOf pool(EvictionKind::kLru, 8);
    CHECK(pool.requests(row.requests).evict(8) == row.gone);
  }
}

TEST_CASE("lru in a full pool makes room for each new chunk as it comes", "[policy][eviction]") {
  PoolOf pool(EvictionKind::kLru, 3);
  CHECK(pool.requests({"abc", "a", "d"}).resident() == "acd");
  // The request's own chunks are not spared: d takes b's place, and the chain is broken.
  CHECK(pool.requests({"efgh"}).resident() == "fgh");
}

}  // namespace
}  // namespace berth::policy
