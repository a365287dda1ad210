// The measurements of berth-bench-worker, in rounds that hold figure and floor each, so that a
// ratio compares what happened side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/rpc/statistics.h"
#include "tests/bench/worker/engine_rig.h"

namespace berth::bench {

// Objects of 1 MiB through a pool, by std::memcpy between the same buffers.
struct BytesRow {
  std::string what;  // store, load
  uint64_t batch = 0;
  Spread gib_per_second;
  Spread of_memcpy;              // the ratio that is asked for
  Spread of_memcpy_with_memcpy;  // the same, had the engine copied by std::memcpy
  Spread calls_us;               // what a batch spends in calls: all that is no copying
  double first_touch_of_memcpy =
      0;  // of the first pass, when the engine has not touched a page yet
};
// One row of each for each batch. `objects` fit into the pool.
Result<std::vector<BytesRow>> measure_bytes(EngineRig& rig, uint64_t objects,
                                            const std::vector<uint64_t>& batches, uint64_t rounds);

// Calls that move no byte: from a call to spans, and with the release, by gRPC echoes of the same
// message sizes over a unix socket.
struct LatencyRow {
  uint64_t batch = 0;
  Spread load_us, load_p99_us;
  Spread load_of_echo;  // p50 by p50: the ratio that is asked for
  Spread release_us;
  Spread cycle_of_echoes;  // load and release, by two echoes
  Spread echo_us;
};
Result<std::vector<LatencyRow>> measure_latency(EngineRig& rig,
                                                const std::vector<uint64_t>& batches,
                                                uint64_t rounds, double seconds);

}  // namespace berth::bench
