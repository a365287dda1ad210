// What the kernel says about a mapping of this process: how much of it is really pinned and on
// which NUMA node its pages really lie. Asked after the fact, because a call that returned success
// is no proof (limits, cpusets and containers all bend it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/error.h"

namespace berth::pool {

// Resident bytes of the mapping in areas that are locked or consist of huge pages, from
// /proc/self/smaps. Reads the page tables: not for a hot path. Errors: kIoError.
Result<uint64_t> measure_pinned_bytes(std::span<const std::byte> mapping);

struct Placement {
  int node = -1;                // where most of the sampled pages lie; -1: the kernel would not say
  uint64_t sampled_pages = 0;   // of them
  uint64_t off_node_pages = 0;  // ... not on `wanted_node`, or not on `node` where none is wanted
};
inline constexpr int kAnyNode = -1;
// Asks for at most `sample_max` pages, spread evenly. Errors: kIoError.
Result<Placement> measure_placement(std::span<const std::byte> mapping, uint64_t page_bytes,
                                    int wanted_node, size_t sample_max = 1024);

}  // namespace berth::pool
