// Least recently used: one list, the oldest goes first. Chunks are touched in chain order, so of a
// request the first chunk is the oldest; that is plain LRU, and the baseline that others are
// measured by.
#pragma once

#include <string>
#include <vector>

#include "server/policy/eviction.h"

namespace berth::policy {

class Lru final : public EvictionPolicy {
 public:
  explicit Lru(SlotStates& slots) : slots_(slots) {}

  void request() override {}
  void accessed(std::span<const uint32_t> slots) override;
  void inserted(const Chunk& chunk) override;
  void removed(uint32_t slot) override;
  void pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) override;

  size_t size() const override { return list_.size(); }
  size_t memory_bytes() const override { return sizeof(*this); }
  std::string describe() const override { return "least recently used first"; }

 private:
  void renew(uint32_t slot);

  SlotStates& slots_;
  SlotList list_;
};

}  // namespace berth::policy
