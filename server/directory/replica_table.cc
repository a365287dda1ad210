#include "server/directory/replica_table.h"

#include "common/check.h"

namespace berth {

size_t ReplicaTable::memory_bytes() const {
  return chunks_.size() * (sizeof(ReplicaSlot) << kChunkBits) + by_id_.memory_bytes() +
         by_key_.memory_bytes() + free_.capacity() * sizeof(uint32_t);
}

uint64_t ReplicaTable::id_hash(ReplicaId id) {
  uint64_t h = id.value() * 0x9E3779B97F4A7C15u;
  return h ^ (h >> 29);
}

uint32_t ReplicaTable::slot_of(ReplicaId id) const {
  return by_id_.find(id_hash(id), [&](uint32_t slot) { return at(slot).replica.id == id; });
}

uint32_t ReplicaTable::first_slot_of(const ObjectKey& key) const {
  return by_key_.find(hash_of(key), [&](uint32_t slot) { return at(slot).replica.key == key; });
}

uint32_t ReplicaTable::take_slot() {
  if (!free_.empty()) {
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  BERTH_CHECK(slot_limit_ != kNone, "replica slots are exhausted");
  if ((slot_limit_ & kChunkMask) == 0)
    chunks_.push_back(std::make_unique<ReplicaSlot[]>(kChunkMask + 1));
  return slot_limit_++;
}

uint32_t ReplicaTable::insert(const Replica& replica, uint32_t& pool_head) {
  const uint32_t slot = take_slot();
  ReplicaSlot& s = at(slot);
  s = ReplicaSlot{};
  s.replica = replica;
  by_id_.insert(id_hash(replica.id), slot,
                [&](uint32_t other) { return id_hash(at(other).replica.id); });
  link_key(slot);
  s.pool_next = pool_head;
  if (pool_head != kNone) at(pool_head).pool_previous = slot;
  pool_head = slot;
  return slot;
}

void ReplicaTable::erase(uint32_t slot, uint32_t& pool_head) {
  ReplicaSlot& s = at(slot);
  if (s.pool_previous != kNone)
    at(s.pool_previous).pool_next = s.pool_next;
  else
    pool_head = s.pool_next;
  if (s.pool_next != kNone) at(s.pool_next).pool_previous = s.pool_previous;
  unlink_key(slot);
  by_id_.erase(id_hash(s.replica.id), slot,
               [&](uint32_t other) { return id_hash(at(other).replica.id); });
  s = ReplicaSlot{};
  free_.push_back(slot);
}

void ReplicaTable::link_key(uint32_t slot) {
  ReplicaSlot& s = at(slot);
  const uint32_t head = first_slot_of(s.replica.key);
  if (head == kNone) {
    by_key_.insert(hash_of(s.replica.key), slot,
                   [&](uint32_t other) { return hash_of(at(other).replica.key); });
    return;
  }
  // Behind the head, so that the index entry need not change.
  s.next_same_key = at(head).next_same_key;
  at(head).next_same_key = slot;
}

void ReplicaTable::unlink_key(uint32_t slot) {
  const ReplicaSlot& s = at(slot);
  const uint64_t hash = hash_of(s.replica.key);
  const uint32_t head = first_slot_of(s.replica.key);
  if (head == slot) {
    if (s.next_same_key != kNone)
      by_key_.replace(hash, slot, s.next_same_key);
    else
      by_key_.erase(hash, slot, [&](uint32_t other) { return hash_of(at(other).replica.key); });
    return;
  }
  uint32_t before = head;
  while (at(before).next_same_key != slot) before = at(before).next_same_key;
  at(before).next_same_key = s.next_same_key;
}

}  // namespace berth
