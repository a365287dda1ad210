// Ends the process when a stop takes too long: a stuck disk or library must not hold it until the
// service manager loses patience. What was acknowledged is in the store's log by then.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/time.h"

namespace berth {

class StopGuard {
 public:
  // From now on the process has so long, unless the guard goes away before.
  explicit StopGuard(Duration within);
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

 private:
  void watch(Duration within);

  std::mutex mutex_;  // guards is_over_
  std::condition_variable changed_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace berth
