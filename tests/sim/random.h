// The simulator's chance: one seed, the same numbers on every machine and compiler. Standard
// distributions differ between libraries, so there are none here.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"

namespace berth::sim {

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9E3779B97F4A7C15u ^ (b + 0xD1B54A32D192ED03u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

class Random {  // xoshiro256**, seeded by splitmix64
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = mix(++seed, 0);
  }

  uint64_t next() {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate(state_[3], 45);
    return result;
  }

  // 0 to n-1; n is small, so the modulo's bias does not matter.
  uint64_t below(uint64_t n) { return next() % n; }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low + 1)));
  }
  bool chance(uint64_t per_mille) { return below(1000) < per_mille; }
  template <class T>
  T& pick(std::vector<T>& from) {
    return from[below(from.size())];
  }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }
  Id128 id128() { return {next(), next() | 1}; }
  std::string bytes(size_t n) {
    std::string text(n, '\0');
    for (char& c : text) c = static_cast<char>(next());
    return text;
  }

 private:
  static uint64_t rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<uint64_t, 4> state_{};
};

}  // namespace berth::sim
