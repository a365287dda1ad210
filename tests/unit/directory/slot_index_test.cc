#include "server/directory/slot_index.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <unordered_map>
#include <vector>

namespace berth {
namespace {

// Slots with the hashes of their keys; the index is asked about both.
struct Checked {
  SlotIndex index;
  std::unordered_map<uint32_t, uint64_t> hash_of;

  void insert(uint64_t hash, uint32_t slot) {
    index.insert(hash, slot);
    hash_of[slot] = hash;
  }
  void erase(uint32_t slot) {
    index.erase(hash_of[slot], slot);
    hash_of.erase(slot);
  }
  uint32_t find(uint64_t hash) const {
    return index.find(hash, [&](uint32_t slot) { return hash_of.at(slot) == hash; });
  }
  void check() const {
    REQUIRE(index.size() == hash_of.size());
    for (const auto& [slot, hash] : hash_of) {
      REQUIRE(find(hash) == slot);
      REQUIRE(index.candidate(hash) != SlotIndex::kNone);
    }
  }
};

TEST_CASE("a slot index finds every key through the splits of its segments, and none that is gone",
          "[directory][index]") {
  const char* given = std::getenv("BERTH_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("replay with BERTH_SEED=" << seed);
  std::mt19937_64 random(seed);
  Checked checked;
  for (uint32_t slot = 0; slot < 60'000; ++slot) {
    checked.insert(random(), slot);
    if (slot % 3 == 2) checked.erase(slot - static_cast<uint32_t>(random() % 3));
  }
  checked.check();
  for (uint32_t slot = 0; slot < 60'000; slot += 2)
    if (checked.hash_of.contains(slot)) {
      const uint64_t hash = checked.hash_of[slot];
      checked.erase(slot);
      REQUIRE(checked.find(hash) == SlotIndex::kNone);
    }
  checked.check();
}

TEST_CASE("a slot index keeps its entries when the head of a chain changes", "[directory][index]") {
  SlotIndex index;
  const auto any = [](uint32_t) { return true; };
  CHECK(index.find_or_insert(uint64_t{7} << 32, 3, any) == SlotIndex::kNone);
  CHECK(index.find_or_insert(uint64_t{7} << 32, 4, any) == 3);
  index.replace(uint64_t{7} << 32, 3, 9);
  CHECK(index.find(uint64_t{7} << 32, any) == 9);
  CHECK(index.size() == 1);
}

// As somebody could make them on purpose: no split tells them apart.
TEST_CASE("more keys of like hashes than a segment holds are slow, and found",
          "[directory][index]") {
  Checked checked;
  for (uint32_t slot = 0; slot < 5000; ++slot)
    checked.insert((uint64_t{0xABCDE} << 44) + slot, slot);
  checked.insert(1, 5000);
  checked.check();
  checked.index.replace(checked.hash_of[4999], 4999, 6000);
  checked.hash_of[6000] = checked.hash_of[4999];
  checked.hash_of.erase(4999);
  for (uint32_t slot = 0; slot < 4999; slot += 3) checked.erase(slot);
  checked.check();
  CHECK(checked.find((uint64_t{0xABCDE} << 44) + 3) == SlotIndex::kNone);
}

}  // namespace
}  // namespace berth
