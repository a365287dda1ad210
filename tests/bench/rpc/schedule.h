// When the cycles of an open loop are meant to start: a Poisson stream of a fixed rate, the same
// for the same seed. A slow answer moves no later start, so latency that is counted from here
// contains the waiting that a closed loop hides.
#pragma once

#include <cstdint>

namespace berth::bench {

class Schedule {
 public:
  // `per_second` is above zero.
  Schedule(double per_second, uint64_t seed);

  // Nanoseconds from the beginning; never falls.
  uint64_t next();

 private:
  double mean_gap_nanos_;
  double at_nanos_ = 0;
  uint64_t state_;
};

}  // namespace berth::bench
