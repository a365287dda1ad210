// How long to wait before the next try: doubling from `min` to `max`, each wait drawn between half
// and all of it, so that a fleet does not come back in step. Pure: chance comes from the seed.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/time.h"

namespace berth::worker {

class Backoff {
 public:
  Backoff(Duration min, Duration max, uint64_t seed) : min_(min), max_(max), state_(seed) {}

  // The wait after one more failure.
  Duration next() {
    const Duration whole = std::min(max_, min_ * (int64_t{1} << std::min(failures_, 20)));
    ++failures_;
    const int64_t half = whole.millis / 2;
    return {whole.millis - half + static_cast<int64_t>(random() % static_cast<uint64_t>(half + 1))};
  }
  void reset() { failures_ = 0; }
  int failures() const { return failures_; }

 private:
  uint64_t random() {  // splitmix64
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  Duration min_;
  Duration max_;
  uint64_t state_;
  int failures_ = 0;
};

}  // namespace berth::worker
