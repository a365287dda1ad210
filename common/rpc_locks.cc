#include "common/rpc_locks.h"

#include <absl/synchronization/mutex.h>

namespace berth {

void skip_lock_order_checks() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace berth
