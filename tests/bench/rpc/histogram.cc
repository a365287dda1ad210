#include "tests/bench/rpc/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace berth::bench {
namespace {

// Values below 2 * kHalf have a bucket each; from there on every power of two has kHalf of them.
constexpr uint64_t kHalf = 64;
constexpr int kHalfBits = 6;
constexpr size_t kBuckets = 2 * kHalf + (64 - kHalfBits - 1) * kHalf;

size_t bucket_of(uint64_t nanos) {
  if (nanos < 2 * kHalf) return nanos;
  const int shift = static_cast<int>(std::bit_width(nanos)) - kHalfBits - 1;
  return 2 * kHalf + static_cast<size_t>(shift - 1) * kHalf + ((nanos >> shift) - kHalf);
}

uint64_t upper_edge(size_t bucket) {
  if (bucket < 2 * kHalf) return bucket;
  const size_t shift = (bucket - 2 * kHalf) / kHalf + 1;
  const uint64_t top = (bucket - 2 * kHalf) % kHalf + kHalf;
  return (top << shift) + ((uint64_t{1} << shift) - 1);
}

}  // namespace

Histogram::Histogram() : counts_(kBuckets) {}

void Histogram::record(uint64_t nanos) {
  ++counts_[bucket_of(nanos)];
  ++count_;
  max_ = std::max(max_, nanos);
}

void Histogram::add(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() { *this = Histogram(); }

uint64_t Histogram::percentile(double percent) const {
  const double rank = std::ceil(percent / 100 * static_cast<double>(count_));
  const auto wanted = std::max(static_cast<uint64_t>(rank), uint64_t{1});
  uint64_t passed = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    passed += counts_[i];
    if (passed >= wanted) return std::min(upper_edge(i), max_);
  }
  return max_;
}

}  // namespace berth::bench
