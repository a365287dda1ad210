// S3-FIFO (Yang et al., SOSP 2023): a small queue for what is new, a main queue for what was used
// again, and ghosts that send a key straight to the main queue when it comes back soon.
//
//   new ─▶ small (a tenth) ─used─▶ main ─used─▶ main again
//               └─ not used ─▶ out, leaves a ghost      └─ not used ─▶ out
#pragma once

#include <string>
#include <vector>

#include "server/policy/eviction.h"
#include "server/policy/ghosts.h"

namespace berth::policy {

class S3Fifo final : public EvictionPolicy {
 public:
  explicit S3Fifo(SlotStates& slots) : slots_(slots) {}

  void request() override {}
  void accessed(std::span<const uint32_t> slots) override;
  void inserted(const Chunk& chunk) override;
  void removed(uint32_t slot) override;
  void pick(size_t n, const Eligible& eligible, std::vector<uint32_t>& victims) override;

  size_t size() const override { return small_.size() + main_.size(); }
  size_t memory_bytes() const override { return sizeof(*this) + ghosts_.memory_bytes(); }
  std::string describe() const override {
    return "new objects on probation in a tenth of the pool";
  }

 private:
  static constexpr uint16_t kUsesMax = 3;
  enum Queue : uint8_t { kSmall, kMain };

  SlotList& list_of(uint32_t slot) { return slots_.at(slot).queue == kSmall ? small_ : main_; }
  void move_to_main(uint32_t slot);
  void leave_ghost(uint32_t slot);
  // Moves used slots on until the end of a queue is one that was not used again; answers it.
  uint32_t settle();

  SlotStates& slots_;
  SlotList small_;
  SlotList main_;
  Ghosts ghosts_;
  uint64_t ghosts_made_ = 0;  // a ghost's stamp: it counts as long as it is among the last size()
};

}  // namespace berth::policy
