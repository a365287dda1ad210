#include "server/policy/reuse_record.h"

#include <algorithm>
#include <bit>

namespace berth::policy {

// Two buckets an octave: 0..7, 8..11, 12..15, 16..23, 24..31, ...
size_t ReuseRecord::age_bucket(uint64_t age) {
  if (age < 8) return 0;
  const auto octave = static_cast<size_t>(std::bit_width(age)) - 1;
  const size_t upper_half = (age >> (octave - 1)) & 1;
  return std::min(kAges - 1, 1 + (octave - 3) * 2 + upper_half);
}

double ReuseRecord::age_from(size_t bucket) {
  if (bucket == 0) return 0;
  const size_t octave = (bucket - 1) / 2 + 3;
  return static_cast<double>((uint64_t{2} + (bucket - 1) % 2) << (octave - 1));
}

size_t ReuseRecord::bin_of(uint64_t stamp) const {
  const uint64_t unit = stamp >> kUnitBits;
  if (unit <= origin_) return 0;
  return std::min<size_t>(kBins - 1, (unit - origin_) >> shift_);
}

void ReuseRecord::joined(size_t chunk_class, uint64_t stamp) {
  ++population_[chunk_class][bin_of(stamp)];
}

void ReuseRecord::left(size_t chunk_class, uint64_t stamp) {
  // A ghost's stamp wraps after a quarter of a billion requests; one so old may name a wrong bin.
  uint32_t& bin = population_[chunk_class][bin_of(stamp)];
  if (bin > 0) --bin;
}

void ReuseRecord::reused(size_t chunk_class, uint64_t age) {
  reuses_[chunk_class][age_bucket(age)] += 1;
}

void ReuseRecord::coarsen() {
  for (auto& bins : population_) {
    for (size_t i = 0; i < kBins / 2; ++i) bins[i] = bins[2 * i] + bins[2 * i + 1];
    std::fill(bins.begin() + kBins / 2, bins.end(), 0);
  }
  ++shift_;
}

void ReuseRecord::forget_half() {
  for (auto& bins : population_) {
    for (size_t i = 0; i < kBins / 2; ++i) bins[kBins / 2] += bins[i];
    std::copy(bins.begin() + kBins / 2, bins.end(), bins.begin());
    std::fill(bins.begin() + kBins / 2, bins.end(), 0);
  }
  origin_ += (kBins / 2) << shift_;
}

void ReuseRecord::advance(uint64_t now) {
  now_ = now;
  // Room up to the next advance(): the last quarter of the bins stays free.
  while (((now >> kUnitBits) - origin_) >> shift_ >= kBins / 4 * 3) {
    uint64_t old = 0;
    uint64_t all = 0;
    for (const auto& bins : population_)
      for (size_t i = 0; i < kBins; ++i) {
        all += bins[i];
        if (i < kBins / 2) old += bins[i];
      }
    // What is very old need not be told apart, as long as it is little.
    if (old * 16 <= all)
      forget_half();
    else
      coarsen();
  }
  for (size_t c = 0; c < kClasses; ++c)
    for (size_t i = kBins; i-- > 0;) from_bin_[c][i] = from_bin_[c][i + 1] + population_[c][i];
  for (size_t c = 0; c < kClasses; ++c)
    for (size_t b = 0; b < kAges; ++b) exposed_[c][b] += held_in(c, b, age_from(b + 1));
  ++advances_;
}

void ReuseRecord::fade(double factor) {
  for (auto& ages : reuses_)
    for (double& count : ages) count *= factor;
  for (auto& ages : exposed_)
    for (double& count : ages) count *= factor;
  advances_ *= factor;
}

double ReuseRecord::reuses() const {
  double sum = 0;
  for (const auto& ages : reuses_)
    for (const double count : ages) sum += count;
  return sum;
}

double ReuseRecord::younger_than(size_t chunk_class, int64_t age) const {
  const auto& from = from_bin_[chunk_class];
  if (age <= 0) return 0;
  const int64_t since = static_cast<int64_t>(now_) - age;
  const int64_t offset = since - static_cast<int64_t>(origin_ << kUnitBits);
  if (offset <= 0) return from[0];
  const auto bin = static_cast<size_t>(offset) >> (shift_ + kUnitBits);
  const double width = static_cast<double>(uint64_t{1} << (shift_ + kUnitBits));
  const double part = static_cast<double>(offset) / width - static_cast<double>(bin);
  return from[bin] - part * (from[bin] - from[bin + 1]);
}

double ReuseRecord::resident_with(const Credits& credits, int64_t age) const {
  double sum = 0;
  for (size_t c = 0; c < kClasses; ++c) sum += younger_than(c, age + credits[c]);
  return sum;
}

double ReuseRecord::held_in(size_t chunk_class, size_t bucket, double up_to) const {
  const double to = std::min(up_to, age_from(bucket + 1));
  return younger_than(chunk_class, static_cast<int64_t>(to)) -
         younger_than(chunk_class, static_cast<int64_t>(age_from(bucket)));
}

double ReuseRecord::hits_younger_than(size_t chunk_class, int64_t age) const {
  const auto up_to = static_cast<double>(age);
  double sum = 0;
  for (size_t b = 0; b < kAges && age_from(b) < up_to; ++b) {
    const double exposed = exposed_[chunk_class][b];
    if (exposed > 0) sum += reuses_[chunk_class][b] / exposed * held_in(chunk_class, b, up_to);
  }
  return sum * advances_;
}

double ReuseRecord::hits_with(const Credits& credits, size_t capacity) const {
  const auto [least, most] = std::minmax_element(credits.begin(), credits.end());
  // The age of the oldest chunk without credit that the pool would hold: between none and all fit.
  int64_t none = -*most;
  int64_t all = static_cast<int64_t>(now_) - *least + 1;
  const auto room = static_cast<double>(capacity);
  while (all - none > 1) {
    const int64_t middle = none + (all - none) / 2;
    (resident_with(credits, middle) <= room ? none : all) = middle;
  }
  double hits = 0;
  for (size_t c = 0; c < kClasses; ++c) hits += hits_younger_than(c, none + credits[c]);
  return hits;
}

}  // namespace berth::policy
