// From replica ids to slots. Ids are consecutive numbers, handed out in runs, so sixteen neighbours
// share one cache line, and only the lines are hashed: about six bytes an id while most neighbours
// live, and a run of 128 ids touches eight lines. An id whose neighbours are all gone costs ninety.
//
//   id / 16 ─▶ index ─▶ block   [slot|slot|slot| none |slot| ...  16]      id % 16: which of them
//
// Single-threaded. A block that holds nothing any more is used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/ids.h"
#include "server/directory/chunked_array.h"
#include "server/directory/slot_index.h"

namespace berth {

class IdIndex {
 public:
  static constexpr uint32_t kNone = SlotIndex::kNone;

  size_t size() const { return size_; }
  size_t memory_bytes() const;

  // The slot of the id, or kNone.
  uint32_t find(ReplicaId id) const;
  // Of each of them; several at once, so that their lines come side by side.
  void find(std::span<const ReplicaId> ids, std::span<uint32_t> slots) const;

  // The id must not be present.
  void insert(ReplicaId id, uint32_t slot);
  void erase(ReplicaId id);

 private:
  static constexpr size_t kBlock = 16;
  struct alignas(64) Block {
    std::array<uint32_t, kBlock> slots;
  };

  static uint64_t number_of(ReplicaId id) { return id.value() / kBlock; }
  static size_t place_of(ReplicaId id) { return id.value() % kBlock; }
  static uint64_t hash_of(uint64_t number);
  uint32_t block_of(uint64_t number) const;
  uint32_t take_block(uint64_t number);
  void find_group(std::span<const ReplicaId> ids, std::span<uint32_t> slots) const;

  ChunkedArray<Block, 15> blocks_;
  ChunkedArray<uint64_t, 18> numbers_;  // of each block
  uint32_t free_ = kNone;               // first free block; the next one is in its first slot
  SlotIndex index_;                     // from numbers to blocks
  size_t size_ = 0;
};

}  // namespace berth
