// One berth-worker process from its life lock to its exit code: pools, the agent and its shells,
// and the main loop that gives them time.
#pragma once

#include "worker/config.h"

namespace berth::worker {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitBadConfig = 2;
inline constexpr int kExitNameInUse = 3;  // a live worker has this name

// Runs until `stop_descriptor` says so (common/signals.h), then stops within ten seconds, also with
// engines that hold on to spans: their mapping keeps the memory alive, and the successor proves
// what became of them. Returns the exit code.
int run_worker(const WorkerConfig& config, const HostMemory& host, int stop_descriptor);

}  // namespace berth::worker
