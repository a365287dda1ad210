// The small index of a batch, against what it stands for.
#include "server/directory/batch_index.h"

#include <catch2/catch.hpp>
#include <random>
#include <unordered_map>

#include "tests/unit/pool/seed.h"

namespace berth {
namespace {

// Few of them, so that tags and homes collide.
uint64_t hash_of_key(uint32_t key) { return uint64_t{key % 13} << 40 | uint64_t{key} << 32; }

TEST_CASE("an index of a batch finds what was inserted and not erased since", "[directory]") {
  for (const uint64_t seed : pool::property_seeds(20)) {
    INFO(pool::replay_with(seed));
    std::mt19937_64 chance(seed);
    BatchIndex index;
    std::unordered_map<uint32_t, uint32_t> slots;  // by key
    std::vector<uint32_t> keys;                    // by slot
    for (int step = 0; step < 2000; ++step) {
      const auto key = static_cast<uint32_t>(pool::below(chance, 300));
      const uint64_t hash = hash_of_key(key);
      const auto found = index.find(hash, [&](uint32_t slot) { return keys[slot] == key; });
      const auto known = slots.find(key);
      REQUIRE(found == (known == slots.end() ? BatchIndex::kNone : known->second));
      const auto fresh = static_cast<uint32_t>(keys.size());
      if (known == slots.end()) {
        index.insert(hash, fresh);
        slots[key] = fresh;
        keys.push_back(key);
      } else if (pool::below(chance, 2) == 0) {
        index.erase(hash, known->second);
        slots.erase(known);
      } else {
        index.replace(hash, known->second, fresh);
        known->second = fresh;
        keys.push_back(key);
      }
    }
  }
}

}  // namespace
}  // namespace berth
