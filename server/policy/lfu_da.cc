#include "server/policy/lfu_da.h"

namespace berth::policy {

LfuDa::Entry LfuDa::entry_of(uint32_t slot) {
  return {age_ + slots_.at(slot).uses, ++touches_, slot};
}

void LfuDa::put(size_t place, const Entry& entry) {
  heap_[place] = entry;
  slots_.at(entry.slot).previous = static_cast<uint32_t>(place);
}

void LfuDa::sift_up(size_t place) {
  const Entry entry = heap_[place];
  while (place > 0 && entry < heap_[(place - 1) / 2]) {
    put(place, heap_[(place - 1) / 2]);
    place = (place - 1) / 2;
  }
  put(place, entry);
}

void LfuDa::sift_down(size_t place) {
  const Entry entry = heap_[place];
  for (;;) {
    size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
    if (!(heap_[child] < entry)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, entry);
}

void LfuDa::touch(uint32_t slot) {
  // The new priority is never lower than the old one.
  const size_t place = slots_.at(slot).previous;
  heap_[place] = entry_of(slot);
  sift_down(place);
}

void LfuDa::accessed(std::span<const uint32_t> slots) {
  for (const uint32_t slot : slots) {
    if (!slots_.is_held(slot)) continue;
    SlotState& state = slots_.at(slot);
    if (state.uses < UINT16_MAX) ++state.uses;
    touch(slot);
  }
}

void LfuDa::inserted(const Chunk& chunk) {
  slots_.hold(chunk.slot, chunk.key_hash, 0).uses = 1;
  heap_.push_back(entry_of(chunk.slot));
  sift_up(heap_.size() - 1);
}

void LfuDa::removed(uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  const size_t place = slots_.at(slot).previous;
  slots_.let_go(slot);
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  put(place, last);
  sift_down(place);
  sift_up(slots_.at(last.slot).previous);
}

void LfuDa::pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) {
  size_t skips = 0;
  while (n > 0 && !heap_.empty()) {
    const Entry lowest = heap_.front();
    age_ = lowest.priority;
    if (eligible(lowest.slot)) {
      removed(lowest.slot);
      victims.push_back(lowest.slot);
      --n;
    } else if (skips++ < kSkipsMax) {
      touch(lowest.slot);
    } else {
      return;
    }
  }
}

std::string LfuDa::describe() const {
  return "fewest uses first; the age that they are added to is " + std::to_string(age_);
}

}  // namespace berth::policy
