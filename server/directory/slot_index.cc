#include "server/directory/slot_index.h"

#include <algorithm>
#include <memory>

#include "common/check.h"

namespace berth {

SlotIndex::SlotIndex() : directory_(1), fills_(1) { segments_.append(); }

size_t SlotIndex::memory_bytes() const {
  return segments_.memory_bytes() + directory_.capacity() * sizeof(uint32_t) +
         fills_.capacity() * sizeof(Fill) + overflow_.capacity() * sizeof(Entry);
}

SlotIndex::Entry* SlotIndex::entry_of(uint32_t tag, uint32_t slot) {
  Entry* const segment = segment_of(tag);
  const auto is_it = [slot](uint32_t other) { return other == slot; };
  return const_cast<Entry*>(probing::find(segment, kSegment, tag, is_it));
}

void SlotIndex::insert(uint64_t hash, uint32_t slot) {
  const uint32_t tag = tag_of(hash);
  const auto is_full = [&] { return fills_[number_of(tag)].count >= kFilledMax; };
  while (is_full() && fills_[number_of(tag)].depth < kDepthMax) split(tag);
  ++size_;
  if (is_full()) {
    overflow_.push_back({slot + 1, tag});
    return;
  }
  ++fills_[number_of(tag)].count;
  probing::place(segment_of(tag), kSegment, {slot + 1, tag});
}

void SlotIndex::split(uint32_t tag) {
  const uint32_t old = number_of(tag);
  const unsigned depth = ++fills_[old].depth;
  if (depth > depth_) {
    std::vector<uint32_t> twice(directory_.size() * 2);
    for (size_t i = 0; i < twice.size(); ++i) twice[i] = directory_[i / 2];
    directory_ = std::move(twice);
    ++depth_;
  }
  const auto fresh = static_cast<uint32_t>(fills_.size());
  Segment& fresh_segment = segments_.append();
  fills_.push_back({0, depth});

  // Of the places where the old one stands, the later half becomes the new one's.
  const size_t places = size_t{1} << (depth_ - depth);
  const size_t first = (place_in_directory(tag) / places | 1) * places;
  std::fill_n(directory_.begin() + static_cast<std::ptrdiff_t>(first), places, fresh);

  Segment& old_segment = segments_[old];
  const auto entries = std::make_unique<Segment>(old_segment);
  old_segment = Segment{};
  fills_[old].count = 0;
  for (const Entry& entry : entries->entries) {
    if (!entry.is_set()) continue;
    const bool moves = entry.tag >> (32 - depth) & 1;
    probing::place((moves ? fresh_segment : old_segment).entries.data(), kSegment, entry);
    ++fills_[moves ? fresh : old].count;
  }
}

void SlotIndex::replace(uint64_t hash, uint32_t old_slot, uint32_t new_slot) {
  if (Entry* entry = entry_of(tag_of(hash), old_slot)) {
    entry->slot_plus_one = new_slot + 1;
    return;
  }
  for (Entry& entry : overflow_)
    if (entry.slot() == old_slot) entry.slot_plus_one = new_slot + 1;
}

void SlotIndex::erase(uint64_t hash, uint32_t slot) {
  const uint32_t tag = tag_of(hash);
  Entry* const erased = entry_of(tag, slot);
  if (!erased) {
    size_ -= std::erase_if(overflow_, [&](const Entry& entry) { return entry.slot() == slot; });
    return;
  }
  --size_;
  --fills_[number_of(tag)].count;
  Entry* const segment = segment_of(tag);
  probing::erase(segment, kSegment, static_cast<size_t>(erased - segment));
}

}  // namespace berth
