// A hash index from a key to a 32-bit slot of a table that holds the keys themselves: open
// addressing, linear probing, eight bytes an entry (slot and 32 bits of the hash), no tombstones.
// At a million keys that is 11 to 21 bytes a key, against 50 and more for a node-based map, and a
// lookup touches one line of the index and one of the table.
//
//   hash ─▶ [tag|slot] [tag|slot] [ empty ] ...     equal(slot) asks the table whether it is the
//   key
//
// Single-threaded. The order of entries never shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace berth {

class SlotIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  SlotIndex() : entries_(kInitial) {}

  size_t size() const { return size_; }
  size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry); }

  // The slot whose key has this hash and for which equal(slot) holds, or kNone.
  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const {
    for (size_t i = home(hash);; i = next(i)) {
      const Entry& entry = entries_[i];
      if (entry.slot == kNone) return kNone;
      if (entry.tag == tag_of(hash) && equal(entry.slot)) return entry.slot;
    }
  }

  // The key must not be present. rehash(slot) gives the full hash of a slot's key, for growth.
  template <class Rehash>
  void insert(uint64_t hash, uint32_t slot, Rehash rehash) {
    if ((size_ + 1) * 4 > entries_.size() * 3) grow(rehash);
    place(hash, slot);
    ++size_;
  }

  // The entry of `old_slot` under this hash now leads to `new_slot` (head of a chain changed).
  void replace(uint64_t hash, uint32_t old_slot, uint32_t new_slot) {
    for (size_t i = home(hash); entries_[i].slot != kNone; i = next(i))
      if (entries_[i].slot == old_slot) {
        entries_[i].slot = new_slot;
        return;
      }
  }

  // Removes the entry of this slot under this hash; following entries move back, so that no
  // tombstones remain.
  template <class Rehash>
  void erase(uint64_t hash, uint32_t slot, Rehash rehash) {
    size_t hole = home(hash);
    while (entries_[hole].slot != slot) {
      if (entries_[hole].slot == kNone) return;
      hole = next(hole);
    }
    --size_;
    for (size_t i = next(hole); entries_[i].slot != kNone; i = next(i)) {
      const size_t want = home(rehash(entries_[i].slot));
      // Move back unless the entry's home lies cyclically in (hole, i].
      const bool stays = hole <= i ? (hole < want && want <= i) : (hole < want || want <= i);
      if (stays) continue;
      entries_[hole] = entries_[i];
      hole = i;
    }
    entries_[hole] = Entry{};
  }

 private:
  static constexpr size_t kInitial = 64;
  struct Entry {
    uint32_t slot = kNone;
    uint32_t tag = 0;
  };

  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash); }
  size_t home(uint64_t hash) const {
    return static_cast<size_t>(hash >> 20) & (entries_.size() - 1);
  }
  size_t next(size_t i) const { return (i + 1) & (entries_.size() - 1); }

  void place(uint64_t hash, uint32_t slot) {
    size_t i = home(hash);
    while (entries_[i].slot != kNone) i = next(i);
    entries_[i] = {slot, tag_of(hash)};
  }

  template <class Rehash>
  void grow(Rehash rehash) {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.slot != kNone) place(rehash(entry.slot), entry.slot);
  }

  std::vector<Entry> entries_;
  size_t size_ = 0;
};

}  // namespace berth
