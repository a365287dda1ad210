// LFU with dynamic aging: an object's priority is its number of uses plus the priority of the last
// victim when it was touched, so that old fame fades. The lowest priority goes first, among equals
// the one touched longest ago.
#pragma once

#include <string>
#include <vector>

#include "server/policy/eviction.h"

namespace berth::policy {

class LfuDa final : public EvictionPolicy {
 public:
  explicit LfuDa(SlotStates& slots) : slots_(slots) {}

  void request() override {}
  void accessed(std::span<const uint32_t> slots) override;
  void inserted(const Chunk& chunk) override;
  void removed(uint32_t slot) override;
  void pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) override;

  size_t size() const override { return heap_.size(); }
  size_t memory_bytes() const override { return sizeof(*this) + heap_.capacity() * sizeof(Entry); }
  std::string describe() const override;

 private:
  // A heap by (priority, touch). A slot's `previous` is its place in the heap.
  struct Entry {
    uint64_t priority = 0;
    uint64_t touch = 0;
    uint32_t slot = 0;
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.priority != b.priority ? a.priority < b.priority : a.touch < b.touch;
    }
  };

  Entry entry_of(uint32_t slot);
  void touch(uint32_t slot);
  void put(size_t place, const Entry& entry);
  void sift_up(size_t place);
  void sift_down(size_t place);

  SlotStates& slots_;
  std::vector<Entry> heap_;
  uint64_t age_ = 0;
  uint64_t touches_ = 0;
};

}  // namespace berth::policy
