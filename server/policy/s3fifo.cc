#include "server/policy/s3fifo.h"

#include <algorithm>

namespace berth::policy {

void S3Fifo::accessed(std::span<const uint32_t> slots) {
  for (const uint32_t slot : slots) {
    if (!slots_.is_held(slot)) continue;
    SlotState& state = slots_.at(slot);
    state.uses = std::min<uint16_t>(kUsesMax, static_cast<uint16_t>(state.uses + 1));
  }
}

void S3Fifo::inserted(const Chunk& chunk) {
  SlotState& state = slots_.hold(chunk.slot, chunk.key_hash, kSmall);
  const std::optional<Ghost> ghost = ghosts_.take(state.fingerprint);
  const bool came_back = ghost && ghosts_made_ - ghost->stamp(ghosts_made_) < size();
  state.queue = came_back ? kMain : kSmall;
  list_of(chunk.slot).push_front(slots_, chunk.slot);
}

void S3Fifo::removed(uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  list_of(slot).erase(slots_, slot);
  slots_.let_go(slot);
}

void S3Fifo::move_to_main(uint32_t slot) {
  list_of(slot).erase(slots_, slot);
  slots_.at(slot).queue = kMain;
  main_.push_front(slots_, slot);
}

void S3Fifo::leave_ghost(uint32_t slot) {
  ghosts_.put(Ghost::of(slots_.at(slot).fingerprint, ++ghosts_made_, 1), size());
}

uint32_t S3Fifo::settle() {
  // Amortised: each turn uses up a use that an access paid for.
  for (;;) {
    const bool from_small = !small_.empty() && (main_.empty() || small_.size() * 10 >= size());
    const uint32_t slot = from_small ? small_.back() : main_.back();
    SlotState& state = slots_.at(slot);
    if (state.uses == 0) return slot;
    state.uses = from_small ? uint16_t{0} : static_cast<uint16_t>(state.uses - 1);
    move_to_main(slot);
  }
}

void S3Fifo::pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) {
  size_t skips = 0;
  while (n > 0 && size() > 0) {
    const uint32_t slot = settle();
    if (eligible(slot)) {
      if (slots_.at(slot).queue == kSmall) leave_ghost(slot);
      removed(slot);
      victims.push_back(slot);
      --n;
    } else if (skips++ < kSkipsMax) {
      move_to_main(slot);
    } else {
      return;
    }
  }
}

}  // namespace berth::policy
