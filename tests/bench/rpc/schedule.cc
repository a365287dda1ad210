#include "tests/bench/rpc/schedule.h"

#include <cmath>

#include "common/check.h"
#include "tests/bench/core/chance.h"

namespace berth::bench {

Schedule::Schedule(double per_second, uint64_t seed)
    : mean_gap_nanos_(1e9 / per_second), state_(seed) {
  BERTH_CHECK(per_second > 0, "an open loop has a rate");
}

uint64_t Schedule::next() {
  // 53 bits, as 0 <= chance < 1.
  const double chance = static_cast<double>(next_random(state_) >> 11) * 0x1.0p-53;
  at_nanos_ += -std::log1p(-chance) * mean_gap_nanos_;
  return static_cast<uint64_t>(at_nanos_);
}

}  // namespace berth::bench
