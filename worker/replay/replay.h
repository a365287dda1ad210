// A whole replay: routes the requests, runs the engines side by side, watches over the fleet, and
// adds up.
#pragma once

#include "common/error.h"
#include "worker/replay/options.h"
#include "worker/replay/report.h"

namespace berth::replay {

// `stop_signals` is a descriptor of common/signals.h; a signal ends the replay early, with what was
// counted. Errors: no worker could be joined, or (--local) a process of the fleet died; its logs
// are printed then.
Result<ReplayResult> run_replay(ReplayOptions options, int stop_signals);

}  // namespace berth::replay
