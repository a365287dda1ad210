// Stop signals as something to poll. Call block_stop_signals() first thing in main(), before any
// thread exists: threads inherit the mask, and a signal must find no thread that would die of it.
#pragma once

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

// Blocks SIGTERM, SIGINT and SIGHUP and ignores SIGPIPE. The returned descriptor becomes readable
// when one of the three arrives. Errors: kIoError.
Result<UniqueFd> block_stop_signals();

// The number of a signal that has arrived, or 0. Never waits.
int take_stop_signal(int descriptor);

}  // namespace berth
