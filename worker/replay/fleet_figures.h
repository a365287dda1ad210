// What a local fleet's server says of itself when a replay is over: whether every invariant holds,
// and what eviction has done.
#pragma once

#include <cstdint>
#include <string>

#include "common/error.h"

namespace berth::replay {

struct FleetFigures {
  std::string broken;  // the first invariant that does not hold; empty: all do
  std::string policy;
  uint64_t eviction_slices = 0;
  uint64_t evicted_replicas = 0;
  uint64_t slice_replicas_max = 0;
  uint64_t slice_micros_max = 0;
  uint64_t nothing_evictable = 0;
};

// `address` is berthd's. Errors: of the call.
Result<FleetFigures> ask_fleet(const std::string& address);

}  // namespace berth::replay
