// A pool of another worker that this one was passed: the life lock that says that somebody may map
// it through us, and its descriptor, which is read-only. Both are closed with the last copy of
// this.
#pragma once

#include "common/unique_fd.h"

namespace berth::worker {

struct ImportedPool {
  UniqueFd life;
  UniqueFd memory;
};

}  // namespace berth::worker
