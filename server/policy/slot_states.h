// What eviction knows of each resident object: 24 bytes a slot of the replica table, whatever the
// policy. A slot belongs to one pool, so the policies of all pools share one table and thread their
// lists through it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/check.h"
#include "server/directory/chunked_array.h"

namespace berth::policy {

inline constexpr uint32_t kNoSlot = UINT32_MAX;
inline constexpr uint8_t kNotHeld = UINT8_MAX;

inline uint32_t fingerprint_of(uint64_t key_hash) {
  return static_cast<uint32_t>(key_hash ^ (key_hash >> 32));
}

struct SlotState {
  uint64_t stamp = 0;  // when last touched, in the policy's own count
  uint32_t previous = kNoSlot;
  uint32_t next = kNoSlot;
  uint32_t fingerprint = 0;  // of the key: what a ghost is found by
  uint16_t uses = 0;         // in the policy's own way
  uint8_t queue = kNotHeld;  // of the policy's queues, or its class
  uint8_t group = 0;         // which of its pool's policies holds it; the driver's
};
static_assert(sizeof(SlotState) == 24);

class SlotStates {
 public:
  SlotState& at(uint32_t slot) { return states_[slot]; }
  const SlotState& at(uint32_t slot) const { return states_[slot]; }
  bool is_held(uint32_t slot) const {
    return slot < states_.size() && states_[slot].queue != kNotHeld;
  }

  SlotState& hold(uint32_t slot, uint64_t key_hash, uint8_t queue) {
    while (slot >= states_.size()) states_.append();
    BERTH_CHECK(states_[slot].queue == kNotHeld, "a slot is inserted once until it is gone");
    states_[slot] = SlotState{};
    states_[slot].fingerprint = fingerprint_of(key_hash);
    states_[slot].queue = queue;
    return states_[slot];
  }
  void let_go(uint32_t slot) { states_[slot].queue = kNotHeld; }

  size_t memory_bytes() const { return states_.memory_bytes(); }

 private:
  ChunkedArray<SlotState, 18> states_;
};

// A doubly linked list through the slots: front is newest. Its slots' `previous` and `next` belong
// to it.
class SlotList {
 public:
  uint32_t front() const { return front_; }
  uint32_t back() const { return back_; }
  bool empty() const { return front_ == kNoSlot; }
  size_t size() const { return size_; }

  void push_front(SlotStates& slots, uint32_t slot) { insert_behind(slots, kNoSlot, slot); }

  // Behind `anchor`, which is in the list; kNoSlot: at the front.
  void insert_behind(SlotStates& slots, uint32_t anchor, uint32_t slot) {
    const uint32_t next = anchor == kNoSlot ? front_ : slots.at(anchor).next;
    slots.at(slot).previous = anchor;
    slots.at(slot).next = next;
    (anchor == kNoSlot ? front_ : slots.at(anchor).next) = slot;
    (next == kNoSlot ? back_ : slots.at(next).previous) = slot;
    ++size_;
  }

  void erase(SlotStates& slots, uint32_t slot) {
    const SlotState& state = slots.at(slot);
    (state.previous == kNoSlot ? front_ : slots.at(state.previous).next) = state.next;
    (state.next == kNoSlot ? back_ : slots.at(state.next).previous) = state.previous;
    --size_;
  }

 private:
  uint32_t front_ = kNoSlot;
  uint32_t back_ = kNoSlot;
  size_t size_ = 0;
};

}  // namespace berth::policy
