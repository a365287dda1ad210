// Where a property test gets its seed: BERTH_SEED replays one run, otherwise a fixed list of seeds
// runs. Every check of such a test prints the seed, so that a failure can be replayed alone.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace berth::pool {

inline std::vector<uint64_t> property_seeds(uint64_t count) {
  if (const char* text = std::getenv("BERTH_SEED")) return {std::stoull(text)};
  std::vector<uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), uint64_t{1});
  return seeds;
}

inline std::string replay_with(uint64_t seed) {
  return "replay with BERTH_SEED=" + std::to_string(seed);
}

// Uniform in [0, bound). The same everywhere, unlike std::uniform_int_distribution.
inline uint64_t below(std::mt19937_64& random, uint64_t bound) { return random() % bound; }

}  // namespace berth::pool
