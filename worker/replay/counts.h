// What a replay counts. Plain numbers that add up: over requests, over engines, over processes.
// The comments here are the definitions that docs/replay.md repeats.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace berth::replay {

struct Counts {
  uint64_t requests = 0;
  uint64_t blocks = 0;  // chunks of all prompts
  uint64_t prefix_hits =
      0;  // chunks loaded, and every byte of them verified, under a handle valid to the end
  uint64_t stored = 0;  // items committed (a chunk has shards * parts items)
  uint64_t already_present = 0;
  uint64_t being_written = 0;
  uint64_t skipped = 0;
  std::map<std::string, uint64_t> skipped_by_reason;
  uint64_t skipped_after_warm_up = 0;
  std::map<std::string, uint64_t> skipped_after_warm_up_by_reason;
  uint64_t not_stored =
      0;  // granted and written, but the commit was refused or its outcome is open
  uint64_t load_errors = 0;    // loads and probes that ended in an error that is not an outage
  uint64_t store_errors = 0;   // the same of stores
  uint64_t verify_errors = 0;  // items with a wrong byte under a valid handle
  uint64_t load_fallbacks =
      0;  // chunks that the probe promised and the load did not give; they are misses
  uint64_t misses_unavailable =
      0;  // requests that missed because worker or server were out of reach
  uint64_t rejoins = 0;
  uint64_t loaded_items = 0;
  uint64_t load_nanos = 0;             // time in load and verification, summed over engines
  uint64_t store_nanos = 0;            // time in begin, write and finish, summed over engines
  std::vector<uint32_t> probe_micros;  // one element a probe

  void add(const Counts& other);
};

}  // namespace berth::replay
