// Which pool a new replica goes to. Pure: a function of the facts it is given. Eligibility (owner
// present, scope, tier) was checked before; this only orders and weighs.
#pragma once

#include <cstdint>
#include <span>

#include "common/ids.h"
#include "server/directory/types.h"

namespace berth::policy {

// A pool that the writer may write, in its worker's write order.
struct Candidate {
  PoolId pool;
  uint64_t free_bytes = 0;  // of its budget
  uint64_t budget_bytes = 0;
  uint64_t needed_bytes = 0;  // the object in whole pages of this pool
};

struct Placement {
  PoolId pool;  // none: skipped
  StoreCode code = StoreCode::kGranted;
};

// The first candidate with room. None: says whether waiting could help (pool_full) or never can
// (too_large).
Placement place(std::span<const Candidate> candidates);

}  // namespace berth::policy
