// Open addressing with linear probing over a row of entries whose length is a power of two: what
// the indexes of this folder have in common. An entry starts its search at its tag; there are no
// tombstones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace berth::probing {

struct Entry {
  uint32_t slot_plus_one = 0;  // 0: empty, so that fresh memory is
  uint32_t tag = 0;            // of the hash

  bool is_set() const { return slot_plus_one != 0; }
  uint32_t slot() const { return slot_plus_one - 1; }
};

inline uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

// The first entry with this tag for which equal(slot) holds, or nullptr.
template <class Equal>
const Entry* find(const Entry* row, size_t length, uint32_t tag, Equal equal) {
  for (size_t i = tag & (length - 1); row[i].is_set(); i = (i + 1) & (length - 1))
    if (row[i].tag == tag && equal(row[i].slot())) return &row[i];
  return nullptr;
}

// There must be room.
inline void place(Entry* row, size_t length, Entry entry) {
  size_t i = entry.tag & (length - 1);
  while (row[i].is_set()) i = (i + 1) & (length - 1);
  row[i] = entry;
}

// The entries behind the hole move back, so that searches find them.
inline void erase(Entry* row, size_t length, size_t hole) {
  const size_t mask = length - 1;
  for (size_t i = (hole + 1) & mask; row[i].is_set(); i = (i + 1) & mask) {
    const size_t want = row[i].tag & mask;
    // Move back unless the entry's home lies cyclically in (hole, i].
    const bool stays = hole <= i ? (hole < want && want <= i) : (hole < want || want <= i);
    if (stays) continue;
    row[hole] = row[i];
    hole = i;
  }
  row[hole] = Entry{};
}

}  // namespace berth::probing
