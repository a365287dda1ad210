// What happened lately to chunks of each class: how many there are by age (resident or remembered),
// and at what age they were used again. From it follows what another setting would keep and meet:
//
//   resident under a setting   = the youngest of each class, up to an age that is longer for a
//   class
//                                with more credit, as many as the pool holds now
//   their hits                 = chunks of each age x how often such a chunk was used again lately
//
// The rate, and not the count of reuses, because the two need not fit: after a start, or when a
// class grows, there are chunks of an age that there were hardly any of while the reuses were
// counted.
//
// Fixed size, whatever the number of objects. Ages are in requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace berth::policy {

class ReuseRecord {
 public:
  static constexpr size_t kClasses = 13;
  // Ages are counted in units of 16 requests: what a ghost's stamp is precise to.
  static constexpr unsigned kUnitBits = 4;
  // A credit below which nothing is kept as long as there is anything else.
  static constexpr int64_t kLast = -(int64_t{1} << 42);

  // Requests that a chunk of each class may be older than one without credit.
  using Credits = std::array<int64_t, kClasses>;

  // A chunk of this class was touched at `stamp`...
  void joined(size_t chunk_class, uint64_t stamp);
  // ...and was touched again, or is not remembered any more.
  void left(size_t chunk_class, uint64_t stamp);
  void reused(size_t chunk_class, uint64_t age);

  // To be called now and then, evenly: `now` is later than every stamp, and what was counted before
  // counts less.
  void advance(uint64_t now);
  void fade(double factor);

  double reuses() const;
  // The reuses that a pool of `capacity` chunks with these credits would meet in as long a time as
  // reuses() were counted in. advance() comes before.
  double hits_with(const Credits& credits, size_t capacity) const;

 private:
  static constexpr size_t kBins = 512;
  static constexpr size_t kAges = 44;

  static size_t age_bucket(uint64_t age);
  static double age_from(size_t bucket);
  size_t bin_of(uint64_t stamp) const;
  void coarsen();
  void forget_half();
  double younger_than(size_t chunk_class, int64_t age) const;
  double resident_with(const Credits& credits, int64_t age) const;
  double held_in(size_t chunk_class, size_t bucket, double up_to) const;
  double hits_younger_than(size_t chunk_class, int64_t age) const;

  // Chunks by the time of their last touch: bin i holds 2^shift_ units from origin_ on; the first
  // also what is older.
  std::array<std::array<uint32_t, kBins>, kClasses> population_{};
  // Chunks in bin i or a later one, as of the last advance().
  std::array<std::array<uint32_t, kBins + 1>, kClasses> from_bin_{};
  std::array<std::array<double, kAges>, kClasses> reuses_{};
  // Chunks of each age at every advance(), summed up, and how many of those there were.
  std::array<std::array<double, kAges>, kClasses> exposed_{};
  double advances_ = 0;
  uint64_t origin_ = 0;
  unsigned shift_ = 0;
  uint64_t now_ = 0;
};

}  // namespace berth::policy
