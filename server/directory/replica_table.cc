#include "server/directory/replica_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "common/check.h"

namespace berth {

size_t ReplicaTable::memory_bytes() const {
  return slots_.memory_bytes() + by_id_.memory_bytes() + by_key_.memory_bytes();
}

namespace {

// Word by word: what is mostly equal is not worth a call.
bool is_same(const ObjectKey& a, const ObjectKey& b) {
  static_assert(std::has_unique_object_representations_v<ObjectKey>);
  std::array<uint64_t, 5> left;
  std::array<uint64_t, 5> right;
  static_assert(sizeof left == sizeof(ObjectKey));
  std::memcpy(left.data(), &a, sizeof a);
  std::memcpy(right.data(), &b, sizeof b);
  return ((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[2] ^ right[2]) |
          (left[3] ^ right[3]) | (left[4] ^ right[4])) == 0;
}

}  // namespace

// ---- Finding
// -----------------------------------------------------------------------------------------------

uint32_t ReplicaTable::first_slot_of(const ObjectKey& key) const {
  return by_key_.find(hash_of(key),
                      [&](uint32_t slot) { return is_same(at(slot).replica.key, key); });
}

// The lines of a slot: it spans two, wherever it begins.
void ReplicaTable::prefetch(uint32_t slot) const {
  const auto* bytes = reinterpret_cast<const std::byte*>(&at(slot));
  __builtin_prefetch(bytes);
  __builtin_prefetch(bytes + sizeof(ReplicaSlot) - 1);
}

void ReplicaTable::slots_of(std::span<const ReplicaId> ids, std::span<uint32_t> slots) const {
  by_id_.find(ids, slots);
  for (size_t i = 0; i < ids.size(); ++i)
    if (slots[i] != kNone) prefetch(slots[i]);
}

constexpr size_t kGroup = 32;

void ReplicaTable::first_slots_of(std::span<const ObjectKey> keys,
                                  std::span<uint32_t> slots) const {
  for (size_t from = 0; from < keys.size(); from += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - from);
    first_slots_of_group(keys.subspan(from, count), slots.subspan(from, count));
  }
}

void ReplicaTable::first_slots_of_group(std::span<const ObjectKey> keys,
                                        std::span<uint32_t> slots) const {
  std::array<uint64_t, kGroup> hashes;
  for (size_t i = 0; i < keys.size(); ++i) {
    hashes[i] = hash_of(keys[i]);
    by_key_.prefetch(hashes[i]);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    slots[i] = by_key_.candidate(hashes[i]);
    if (slots[i] != kNone) prefetch(slots[i]);
  }
  for (size_t i = 0; i < keys.size(); ++i)
    if (slots[i] != kNone && !is_same(at(slots[i]).replica.key, keys[i]))
      slots[i] = first_slot_of(keys[i]);
}

// ---- Changing
// ----------------------------------------------------------------------------------------------

uint32_t ReplicaTable::take_slot() {
  if (free_ != kNone) {
    const uint32_t slot = free_;
    free_ = at(slot).pool_next;
    return slot;
  }
  // The index keeps a slot's number plus one.
  BERTH_CHECK(slots_.size() < kNone, "replica slots are exhausted");
  slots_.append();
  return slot_limit() - 1;
}

uint32_t ReplicaTable::insert(const Replica& replica, uint32_t& pool_head) {
  const uint32_t slot = take_slot();
  ReplicaSlot& s = at(slot);
  s = ReplicaSlot{};
  s.replica = replica;
  by_id_.insert(replica.id, slot);
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
  by_id_.erase(s.replica.id);
  s = ReplicaSlot{};
  s.pool_next = free_;
  free_ = slot;
}

void ReplicaTable::link_key(uint32_t slot) {
  ReplicaSlot& s = at(slot);
  const uint32_t head = by_key_.find_or_insert(hash_of(s.replica.key), slot, [&](uint32_t other) {
    return is_same(at(other).replica.key, s.replica.key);
  });
  if (head == kNone) return;
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
      by_key_.erase(hash, slot);
    return;
  }
  uint32_t before = head;
  while (at(before).next_same_key != slot) before = at(before).next_same_key;
  at(before).next_same_key = s.next_same_key;
}

}  // namespace berth
