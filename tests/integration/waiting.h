// Waiting for other processes: polls a condition until it holds or a bound has passed. The bound is
// generous and only ends a test that would hang; what is waited for is always an event, never time.
#pragma once

#include <chrono>
#include <thread>

#include "common/clock.h"
#include "common/time.h"

namespace berth::testing {

// Longer than anything here takes on a machine that is busy with something else.
inline constexpr Duration kSoon = seconds(30);

// Whether `holds` came true within `bound`. It is asked at least once, and again every 10 ms.
template <class Condition>
bool eventually(Condition holds, Duration bound = kSoon) {
  const SteadyClock clock;
  const int64_t until = clock.monotonic_millis() + bound.millis;
  while (!holds()) {
    if (clock.monotonic_millis() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// Lets time pass where the passing of time is the event: a stall, a deadline that must not act.
inline void let_pass(Duration duration) {
  std::this_thread::sleep_for(std::chrono::milliseconds(duration.millis));
}

}  // namespace berth::testing
