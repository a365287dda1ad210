// A hash index like SlotIndex (slot_index.h), for what lives as long as a batch: it costs nothing
// until something is inserted, starts small, and grows by copying itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/directory/probing.h"

namespace berth {

class BatchIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // The slot whose key has this hash and for which equal(slot) holds, or kNone.
  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const {
    if (row_.empty()) return kNone;
    const probing::Entry* const found =
        probing::find(row_.data(), row_.size(), probing::tag_of(hash), equal);
    return found ? found->slot() : kNone;
  }

  // The key must not be present.
  void insert(uint64_t hash, uint32_t slot) {
    if ((size_ + 1) * 4 > row_.size() * 3) grow();
    probing::place(row_.data(), row_.size(), {slot + 1, probing::tag_of(hash)});
    ++size_;
  }

  // The entry of `old_slot` under this hash, which is there, now leads to `new_slot`.
  void replace(uint64_t hash, uint32_t old_slot, uint32_t new_slot) {
    row_[place_of(hash, old_slot)].slot_plus_one = new_slot + 1;
  }

  // Removes the entry of this slot under this hash, which is there.
  void erase(uint64_t hash, uint32_t slot) {
    probing::erase(row_.data(), row_.size(), place_of(hash, slot));
    --size_;
  }

 private:
  size_t place_of(uint64_t hash, uint32_t slot) const {
    const auto is_it = [slot](uint32_t other) { return other == slot; };
    return static_cast<size_t>(
        probing::find(row_.data(), row_.size(), probing::tag_of(hash), is_it) - row_.data());
  }

  void grow() {
    std::vector<probing::Entry> old(row_.empty() ? 64 : row_.size() * 2);
    old.swap(row_);
    for (const probing::Entry& entry : old)
      if (entry.is_set()) probing::place(row_.data(), row_.size(), entry);
  }

  std::vector<probing::Entry> row_;
  size_t size_ = 0;
};

}  // namespace berth
