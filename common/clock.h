// Where instants come from. Only the two main loops and common/ hold a Clock; everything else
// receives a Time. LogicalClock turns monotonic readings into the logical time of time.h and is
// itself pure.
#pragma once

#include <cstdint>
#include <string>

#include "common/time.h"

namespace berth {

class Clock {
 public:
  virtual ~Clock() = default;
  // Never goes back within one boot; says nothing across boots. Thread-safe.
  virtual int64_t monotonic_nanos() const = 0;
  int64_t monotonic_millis() const { return monotonic_nanos() / 1'000'000; }
};

// CLOCK_MONOTONIC, so that a stall of this process shows as one large difference.
class SteadyClock final : public Clock {
 public:
  int64_t monotonic_nanos() const override;
};

// Milliseconds since 1970. For logs, exports and what people read: nothing is ever decided by it.
int64_t wall_clock_millis();
// "2026-01-31T12:00:00.250Z".
std::string wall_clock_text(int64_t wall_millis);

// Logical time from monotonic readings. It starts at the persisted time and moves by the difference
// between two readings, but never by more than `step_max` at once and never back: when this process
// stood still (SIGSTOP, a long write), its peers lose no time, because the stall is swallowed.
//
//   readings   1000  1010  1020  31020  31030     step_max 100 ms, started at Time 500
//   now()       500   510   520    620    630     stall_total() 0 0 0 29900 29900
//
// Not thread-safe: it belongs to one loop.
class LogicalClock {
 public:
  LogicalClock(Time persisted, Duration step_max) : now_(persisted), step_max_(step_max) {}

  // The first reading only sets the base. Returns the new now().
  Time advance(int64_t monotonic_millis);

  Time now() const { return now_; }
  // What the latest advance swallowed; zero when it swallowed nothing.
  Duration stall() const { return stall_; }
  Duration stall_total() const { return stall_total_; }

 private:
  Time now_;
  Duration step_max_;
  Duration stall_;
  Duration stall_total_;
  int64_t last_millis_ = 0;
  bool has_base_ = false;
};

}  // namespace berth
