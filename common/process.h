// Watching another process by pidfd. A pidfd becomes readable (poll, POLLIN) when the process ends.
// It only says when to look: the proof of death is the life lock.
#pragma once

#include <sys/types.h>

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

// CLOEXEC. Errors: kIoError, e.g. no such process.
Result<UniqueFd> open_pidfd(pid_t pid);

// Whether the process has ended, without waiting. Zombies count as ended.
bool has_exited(int pidfd);

}  // namespace berth
