#include "server/stop_guard.h"

#include <chrono>
#include <cstdlib>

#include "common/log.h"

namespace berth {

StopGuard::StopGuard(Duration within) : thread_([this, within] { watch(within); }) {}

StopGuard::~StopGuard() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StopGuard::watch(Duration within) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, std::chrono::milliseconds(within.millis), [&] { return is_over_; }))
    return;
  log::error("stop_took_too_long", {{"within", within}});
  std::_Exit(EXIT_FAILURE);
}

}  // namespace berth
