// A hash index from a key to a 32-bit slot of a table that holds the keys themselves: open
// addressing, linear probing, eight bytes an entry (slot and 32 bits of the hash), no tombstones.
// A lookup touches one line of the index and what the caller looks at to compare.
//
//   first bits of the tag ─▶ directory ─▶ segment   [tag|slot] [tag|slot] [ empty ] ...
//                                         last bits of the tag: where in the segment it starts
//
// Growing splits one segment of 4096 entries, from their tags alone: no key is read, and no insert
// takes longer than that (some tens of microseconds), whatever the size. At most three quarters of
// a segment are filled: 11 to 21 bytes a key.
//
// Single-threaded. The order of entries never shows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/directory/chunked_array.h"
#include "server/directory/probing.h"

namespace berth {

class SlotIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  SlotIndex();

  size_t size() const { return size_; }
  size_t memory_bytes() const;

  // Brings the line where a search for this hash begins.
  void prefetch(uint64_t hash) const {
    __builtin_prefetch(&segment_of(tag_of(hash))[home_of(tag_of(hash))]);
  }

  // The first slot whose key may have this hash, or kNone: no key has it. Nearly always the slot
  // that find() answers, so a batch can bring it before it compares.
  uint32_t candidate(uint64_t hash) const {
    return find(hash, [](uint32_t) { return true; });
  }

  // The slot whose key has this hash and for which equal(slot) holds, or kNone.
  template <class Equal>
  uint32_t find(uint64_t hash, Equal equal) const {
    const uint32_t tag = tag_of(hash);
    const Entry* const segment = segment_of(tag);
    if (const Entry* found = probing::find(segment, kSegment, tag, equal)) return found->slot();
    for (const Entry& entry : overflow_)
      if (entry.tag == tag && equal(entry.slot())) return entry.slot();
    return kNone;
  }

  // The slot that find() answers; if that is kNone, `slot` is inserted under this hash.
  template <class Equal>
  uint32_t find_or_insert(uint64_t hash, uint32_t slot, Equal equal) {
    const uint32_t found = find(hash, equal);
    if (found == kNone) insert(hash, slot);
    return found;
  }

  // The key must not be present.
  void insert(uint64_t hash, uint32_t slot);
  // The entry of `old_slot` under this hash now leads to `new_slot` (head of a chain changed).
  void replace(uint64_t hash, uint32_t old_slot, uint32_t new_slot);
  // Removes the entry of this slot under this hash, if there is one; following entries move back,
  // so that no tombstones remain.
  void erase(uint64_t hash, uint32_t slot);

 private:
  static constexpr unsigned kSegmentBits = 12;
  static constexpr size_t kSegment = size_t{1} << kSegmentBits;
  static constexpr size_t kFilledMax = kSegment / 4 * 3;
  static constexpr unsigned kDepthMax = 32 - kSegmentBits;  // then all bits of the tag are used

  using Entry = probing::Entry;
  struct Segment {
    std::array<Entry, kSegment> entries;
  };
  // How many first bits of their tags the entries of a segment share.
  struct Fill {
    uint32_t count = 0;
    unsigned depth = 0;
  };

  static uint32_t tag_of(uint64_t hash) { return probing::tag_of(hash); }
  static size_t home_of(uint32_t tag) { return tag % kSegment; }

  size_t place_in_directory(uint32_t tag) const {
    return static_cast<size_t>(uint64_t{tag} << depth_ >> 32);
  }
  uint32_t number_of(uint32_t tag) const { return directory_[place_in_directory(tag)]; }
  const Entry* segment_of(uint32_t tag) const { return segments_[number_of(tag)].entries.data(); }
  Entry* segment_of(uint32_t tag) { return segments_[number_of(tag)].entries.data(); }
  Entry* entry_of(uint32_t tag, uint32_t slot);
  void split(uint32_t tag);

  // 2^depth_ numbers of segments; one of less depth stands in several places.
  std::vector<uint32_t> directory_;
  unsigned depth_ = 0;
  ChunkedArray<Segment, 6> segments_;
  std::vector<Fill> fills_;  // of each segment
  // Beyond what a segment holds of tags that agree in their first 20 bits. Three billion keys do
  // that, or somebody who makes keys for it: slow, and right.
  std::vector<Entry> overflow_;
  size_t size_ = 0;
};

}  // namespace berth
