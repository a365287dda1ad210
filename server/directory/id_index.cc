#include "server/directory/id_index.h"

#include <algorithm>

#include "common/check.h"

namespace berth {

size_t IdIndex::memory_bytes() const {
  return blocks_.memory_bytes() + numbers_.memory_bytes() + index_.memory_bytes();
}

uint64_t IdIndex::hash_of(uint64_t number) {
  const uint64_t h = number * 0x9E3779B97F4A7C15u;
  return (h ^ (h >> 32)) * 0xD6E8FEB86659FD93u;
}

uint32_t IdIndex::block_of(uint64_t number) const {
  return index_.find(hash_of(number), [&](uint32_t block) { return numbers_[block] == number; });
}

uint32_t IdIndex::find(ReplicaId id) const {
  const uint32_t block = block_of(number_of(id));
  return block == kNone ? kNone : blocks_[block].slots[place_of(id)];
}

constexpr size_t kGroup = 32;

void IdIndex::find(std::span<const ReplicaId> ids, std::span<uint32_t> slots) const {
  for (size_t from = 0; from < ids.size(); from += kGroup) {
    const size_t count = std::min(kGroup, ids.size() - from);
    find_group(ids.subspan(from, count), slots.subspan(from, count));
  }
}

void IdIndex::find_group(std::span<const ReplicaId> ids, std::span<uint32_t> slots) const {
  struct Run {  // of ids that share a block
    uint64_t number;
    uint64_t hash;
    uint32_t block;
    size_t end;
  };
  std::array<Run, kGroup> runs;
  size_t count = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const uint64_t number = number_of(ids[i]);
    if (count == 0 || runs[count - 1].number != number) {
      runs[count++] = {number, hash_of(number), kNone, 0};
      index_.prefetch(runs[count - 1].hash);
    }
    runs[count - 1].end = i + 1;
  }
  for (Run& run : std::span(runs.data(), count)) {
    run.block = index_.candidate(run.hash);
    if (run.block == kNone) continue;
    __builtin_prefetch(&numbers_[run.block]);
    __builtin_prefetch(&blocks_[run.block]);
  }
  size_t i = 0;
  for (Run& run : std::span(runs.data(), count)) {
    if (run.block != kNone && numbers_[run.block] != run.number) run.block = block_of(run.number);
    for (; i < run.end; ++i)
      slots[i] = run.block == kNone ? kNone : blocks_[run.block].slots[place_of(ids[i])];
  }
}

uint32_t IdIndex::take_block(uint64_t number) {
  uint32_t block = free_;
  if (block == kNone) {
    block = static_cast<uint32_t>(blocks_.size());
    blocks_.append();
    numbers_.append();
  } else {
    free_ = blocks_[block].slots[0];
  }
  blocks_[block].slots.fill(kNone);
  numbers_[block] = number;
  return block;
}

void IdIndex::insert(ReplicaId id, uint32_t slot) {
  uint32_t block = block_of(number_of(id));
  if (block == kNone) {
    block = take_block(number_of(id));
    index_.insert(hash_of(number_of(id)), block);
  }
  uint32_t& place = blocks_[block].slots[place_of(id)];
  BERTH_CHECK(place == kNone, "a replica is inserted once until it is erased");
  place = slot;
  ++size_;
}

void IdIndex::erase(ReplicaId id) {
  const uint32_t block = block_of(number_of(id));
  if (block == kNone) return;
  std::array<uint32_t, kBlock>& slots = blocks_[block].slots;
  if (slots[place_of(id)] == kNone) return;
  slots[place_of(id)] = kNone;
  --size_;
  if (std::any_of(slots.begin(), slots.end(), [](uint32_t slot) { return slot != kNone; })) return;
  index_.erase(hash_of(number_of(id)), block);
  slots[0] = free_;
  free_ = block;
}

}  // namespace berth
