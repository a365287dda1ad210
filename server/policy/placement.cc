#include "server/policy/placement.h"

namespace berth::policy {

Placement place(std::span<const Candidate> candidates) {
  if (candidates.empty()) return {PoolId(), StoreCode::kSkippedNoPool};
  bool could_ever_fit = false;
  for (const Candidate& candidate : candidates) {
    if (candidate.needed_bytes <= candidate.free_bytes)
      return {candidate.pool, StoreCode::kGranted};
    if (candidate.needed_bytes <= candidate.budget_bytes) could_ever_fit = true;
  }
  return {PoolId(), could_ever_fit ? StoreCode::kSkippedPoolFull : StoreCode::kSkippedTooLarge};
}

}  // namespace berth::policy
