// A clock that stands still until a test moves it. Thread-safe, because a server under test may
// read it from its own thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/clock.h"

namespace berth::testing {

class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t start_millis = 1'000'000) : nanos_(start_millis * 1'000'000) {}
  int64_t monotonic_nanos() const override { return nanos_.load(); }
  void advance(Duration by) { nanos_ += by.millis * 1'000'000; }

 private:
  std::atomic<int64_t> nanos_;
};

}  // namespace berth::testing
