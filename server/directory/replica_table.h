// Every replica of the directory, in slots of fixed chunks, with the three ways in: by id, by
// object key (the copies of one object are chained), and by pool (a doubly linked list through the
// slots). About 150 bytes a replica, all told.
//
// Owns nothing but itself; only Directory::install changes it. A slot's address is stable while its
// replica lives.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/directory/records.h"
#include "server/directory/slot_index.h"

namespace berth {

struct ReplicaSlot {
  Replica replica;
  uint32_t lease_count = 0;  // follows from the leases
  Incarnation seen = 0;      // soft: named in the owner's re-attach of that incarnation
  uint32_t next_same_key = SlotIndex::kNone;
  uint32_t pool_previous = SlotIndex::kNone;
  uint32_t pool_next = SlotIndex::kNone;
};

class ReplicaTable {
 public:
  static constexpr uint32_t kNone = SlotIndex::kNone;

  size_t size() const { return by_id_.size(); }
  size_t object_count() const { return by_key_.size(); }
  size_t memory_bytes() const;

  uint32_t slot_of(ReplicaId id) const;
  uint32_t first_slot_of(const ObjectKey& key) const;
  const ReplicaSlot& at(uint32_t slot) const {
    return chunks_[slot >> kChunkBits][slot & kChunkMask];
  }
  ReplicaSlot& at(uint32_t slot) { return chunks_[slot >> kChunkBits][slot & kChunkMask]; }
  // Whether this replica lies in this slot, which may be kNone.
  bool is_at(uint32_t slot, ReplicaId id) const {
    return slot < slot_limit_ && at(slot).replica.id == id;
  }
  // Slots are numbered 0 to slot_limit() - 1; free ones have no valid id. For views that page
  // through everything.
  uint32_t slot_limit() const { return slot_limit_; }

  // `pool_head` is the head of the list of the replica's pool, kept by the caller beside the pool.
  uint32_t insert(const Replica& replica, uint32_t& pool_head);
  void erase(uint32_t slot, uint32_t& pool_head);

 private:
  static constexpr uint32_t kChunkBits = 12;
  static constexpr uint32_t kChunkMask = (1u << kChunkBits) - 1;

  static uint64_t id_hash(ReplicaId id);
  uint32_t take_slot();
  void link_key(uint32_t slot);
  void unlink_key(uint32_t slot);

  std::vector<std::unique_ptr<ReplicaSlot[]>> chunks_;
  std::vector<uint32_t> free_;
  uint32_t slot_limit_ = 0;
  SlotIndex by_id_;
  SlotIndex by_key_;  // leads to the head of the key's chain
};

}  // namespace berth
