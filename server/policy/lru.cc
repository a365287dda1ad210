#include "server/policy/lru.h"

namespace berth::policy {

void Lru::renew(uint32_t slot) {
  list_.erase(slots_, slot);
  list_.push_front(slots_, slot);
}

void Lru::accessed(std::span<const uint32_t> slots) {
  for (const uint32_t slot : slots)
    if (slots_.is_held(slot)) renew(slot);
}

void Lru::inserted(const Chunk& chunk) {
  slots_.hold(chunk.slot, chunk.key_hash, 0);
  list_.push_front(slots_, chunk.slot);
}

void Lru::removed(uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  list_.erase(slots_, slot);
  slots_.let_go(slot);
}

void Lru::pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) {
  size_t skips = 0;
  while (n > 0 && !list_.empty()) {
    const uint32_t slot = list_.back();
    if (eligible(slot)) {
      removed(slot);
      victims.push_back(slot);
      --n;
    } else if (skips++ < kSkipsMax) {
      renew(slot);  // somebody reads it or wants it kept: in use now
    } else {
      return;
    }
  }
}

}  // namespace berth::policy
