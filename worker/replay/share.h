// One engine's share of a replay: its requests in order, against its worker, in the thread that
// calls. The same function serves engines as threads and as processes.
#pragma once

#include <vector>

#include "common/error.h"
#include "worker/replay/counts.h"
#include "worker/replay/options.h"
#include "worker/replay/progress.h"

namespace berth::replay {

// `engine_of` is the router's answer. Ends early when `progress` is stopped; what was counted
// counts. Errors: no worker could be joined, or the namespace not be opened.
Result<Counts> replay_share(const ReplayOptions& options, const std::vector<Request>& requests,
                            const std::vector<uint32_t>& engine_of, uint32_t engine,
                            Progress& progress);

}  // namespace berth::replay
