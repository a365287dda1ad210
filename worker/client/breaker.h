// Circuit breaker of the calls to one worker: after several failures in a row nothing is sent for a
// while, so that an engine loses microseconds to an outage instead of a deadline per call. Pure:
// time and chance are arguments. Not thread-safe.
//
//   closed ──failures_max in a row──▶ open ──open time over──▶ one trial ──success──▶ closed
//                                      ▲                          └──failure: twice as long──┐
//                                      └──────────────────────────────────────────────────────┘
#pragma once

#include <cstdint>

#include "common/time.h"
#include "worker/client/types.h"

namespace berth::client {

class Breaker {
 public:
  enum class Admission : uint8_t { kPass, kTrial, kRefuse };

  explicit Breaker(BreakerOptions options) : options_(options) {}

  // Every call that was not refused reports its end with succeeded(), failed() or withdraw(),
  // exactly once.
  Admission admit(Time now);
  // The call was not made after all.
  void withdraw(Admission admission) {
    if (admission == Admission::kTrial) trial_out_ = false;
  }
  // The worker answered, whatever it said.
  void succeeded();
  // Nobody answered in time. `chance` in [0, 1) spreads the trials of many clients.
  void failed(Admission admission, Time now, double chance);
  // A worker was joined: it is there, whatever happened before.
  void reset() { succeeded(); }

  bool is_open() const { return open_; }
  uint64_t opened_count() const { return opened_count_; }

 private:
  void open(Time now, double chance);

  BreakerOptions options_;
  bool open_ = false;
  bool trial_out_ = false;
  Time trial_at_;
  Duration open_for_;
  uint32_t failures_ = 0;
  uint64_t opened_count_ = 0;
};

// Between half of `bound` and all of it.
Duration jittered(Duration bound, double chance);

}  // namespace berth::client
