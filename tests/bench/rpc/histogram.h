// Durations in nanoseconds, counted in buckets that are at most 1/64 of their value wide, so that
// p99.9 costs no list of samples and the histograms of several runs can be put together. What it
// says is never below what was recorded: a percentile is the upper edge of its bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth::bench {

class Histogram {
 public:
  Histogram();

  void record(uint64_t nanos);
  void add(const Histogram& other);
  void clear();

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }
  // Zero when nothing was recorded. `percent` is 0 to 100.
  uint64_t percentile(double percent) const;

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace berth::bench
