// The chance of all workloads: SplitMix64, so that a seed means the same everywhere. The state is
// the caller's.
#pragma once

#include <cstdint>

#include "worker/replay/content.h"

namespace berth::bench {

inline uint64_t next_random(uint64_t& state) { return replay::mix64(state += replay::kMixStep); }

}  // namespace berth::bench
