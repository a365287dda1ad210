// Every replica of the directory, in slots of fixed chunks, with the three ways in: by id, by
// object key (the copies of one object are chained), and by pool (a doubly linked list through the
// slots). About 115 bytes a replica, all told: 96 of its slot, 6 by id, 11 to 21 by key.
//
// Owns nothing but itself; only Directory::install changes it. A slot's address is stable while its
// replica lives. Lookups of many keys or ids are staged, so that the cache lines that they need
// come side by side and not one after the other.
#pragma once

#include <cstdint>
#include <span>

#include "server/directory/chunked_array.h"
#include "server/directory/id_index.h"
#include "server/directory/records.h"
#include "server/directory/slot_index.h"

namespace berth {

struct ReplicaSlot {
  // What follows lies in the bytes that Replica ends with and does not use.
  [[no_unique_address]] Replica replica;
  uint32_t lease_count = 0;  // follows from the leases
  Incarnation seen = 0;      // soft: named in the owner's re-attach of that incarnation
  uint32_t next_same_key = SlotIndex::kNone;
  uint32_t pool_previous = SlotIndex::kNone;
  uint32_t pool_next = SlotIndex::kNone;  // in a free slot: the next free one
};
static_assert(sizeof(ReplicaSlot) == 96, "a slot is one and a half cache lines");

class ReplicaTable {
 public:
  static constexpr uint32_t kNone = SlotIndex::kNone;

  size_t size() const { return by_id_.size(); }
  size_t object_count() const { return by_key_.size(); }
  size_t memory_bytes() const;

  uint32_t slot_of(ReplicaId id) const { return by_id_.find(id); }
  uint32_t first_slot_of(const ObjectKey& key) const;
  // Of each of them, kNone where there is none. What is found is on its way into the cache.
  void slots_of(std::span<const ReplicaId> ids, std::span<uint32_t> slots) const;
  void first_slots_of(std::span<const ObjectKey> keys, std::span<uint32_t> slots) const;

  const ReplicaSlot& at(uint32_t slot) const { return slots_[slot]; }
  ReplicaSlot& at(uint32_t slot) { return slots_[slot]; }
  // Whether this replica lies in this slot, which may be kNone.
  bool is_at(uint32_t slot, ReplicaId id) const {
    return slot < slot_limit() && at(slot).replica.id == id;
  }
  // Slots are numbered 0 to slot_limit() - 1; free ones have no valid id. For views that page
  // through everything.
  uint32_t slot_limit() const { return static_cast<uint32_t>(slots_.size()); }

  // `pool_head` is the head of the list of the replica's pool, kept by the caller beside the pool.
  uint32_t insert(const Replica& replica, uint32_t& pool_head);
  void erase(uint32_t slot, uint32_t& pool_head);

 private:
  uint32_t take_slot();
  void prefetch(uint32_t slot) const;
  void first_slots_of_group(std::span<const ObjectKey> keys, std::span<uint32_t> slots) const;
  void link_key(uint32_t slot);
  void unlink_key(uint32_t slot);

  ChunkedArray<ReplicaSlot, 16> slots_;
  uint32_t free_ = kNone;  // the slot that was freed last
  IdIndex by_id_;
  SlotIndex by_key_;  // leads to the head of the key's chain
};

}  // namespace berth
