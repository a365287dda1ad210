#include "server/policy/placement.h"

#include <catch2/catch.hpp>
#include <vector>

namespace berth::policy {
namespace {

TEST_CASE(
    "placement takes the first pool with room and tells a full pool from one that is too small",
    "[policy]") {
  struct Row {
    std::vector<Candidate> candidates;
    PoolId pool;
    StoreCode code;
  };
  const PoolId a(1);
  const PoolId b(2);
  const Row rows[] = {
      {{}, PoolId(), StoreCode::kSkippedNoPool},
      {{{a, 100, 100, 10}}, a, StoreCode::kGranted},
      {{{a, 10, 100, 10}}, a, StoreCode::kGranted},
      {{{a, 9, 100, 10}, {b, 10, 100, 10}}, b, StoreCode::kGranted},
      {{{a, 9, 100, 10}, {b, 0, 5, 10}}, PoolId(), StoreCode::kSkippedPoolFull},
      {{{a, 5, 5, 10}, {b, 9, 9, 10}}, PoolId(), StoreCode::kSkippedTooLarge},
  };
  for (const Row& row : rows) {
    const Placement placement = place(row.candidates);
    CHECK(placement.pool == row.pool);
    CHECK(placement.code == row.code);
  }
}

}  // namespace
}  // namespace berth::policy
