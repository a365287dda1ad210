// A small pool under a policy, driven by words: "abc" is a request whose prefix was found (slots of
// chunks a, b, c) or that is new, in chain order. Chunks are single letters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/policy/eviction.h"

namespace berth::policy {

class PoolOf {
 public:
  PoolOf(EvictionKind kind, size_t capacity)
      : capacity_(capacity), policy_(make_eviction_policy(kind, slots_)) {}

  // One request: each chunk is touched, or inserted after a victim left if the pool is full.
  PoolOf& request(const std::string& chain) {
    policy_->request();
    for (uint32_t i = 0; i < chain.size(); ++i) {
      if (const auto it = slot_of_.find(chain[i]); it != slot_of_.end()) {
        policy_->accessed({&it->second, 1});
        continue;
      }
      if (slot_of_.size() == capacity_) evict(1);
      const uint32_t slot = free_slot();
      slot_of_[chain[i]] = slot;
      policy_->inserted({slot, static_cast<uint64_t>(chain[i]) * 0x9E3779B97F4A7C15u, i, false});
    }
    return *this;
  }
  PoolOf& requests(const std::vector<std::string>& chains) {
    for (const std::string& chain : chains) request(chain);
    return *this;
  }

  // The chunks that left, in order.
  std::string evict(size_t n, const std::string& protected_chunks = "") {
    std::vector<uint32_t> victims;
    const auto eligible = [&](uint32_t slot) {
      return protected_chunks.find(chunk_in(slot)) == std::string::npos;
    };
    policy_->pick(n, eligible, victims);
    std::string gone;
    for (const uint32_t slot : victims) gone += chunk_in(slot);
    for (const char chunk : gone) slot_of_.erase(chunk);
    return gone;
  }
  void remove(char chunk) {
    policy_->removed(slot_of_.at(chunk));
    slot_of_.erase(chunk);
  }

  std::string resident() const {
    std::string all;
    for (const auto& [chunk, slot] : slot_of_) all += chunk;
    return all;
  }
  EvictionPolicy& policy() { return *policy_; }

 private:
  char chunk_in(uint32_t slot) const {
    for (const auto& [chunk, at] : slot_of_)
      if (at == slot) return chunk;
    return '?';
  }
  // The lowest: slots are reused as the replica table does.
  uint32_t free_slot() const {
    for (uint32_t slot = 0;; ++slot)
      if (chunk_in(slot) == '?') return slot;
  }

  size_t capacity_;
  SlotStates slots_;
  std::unique_ptr<EvictionPolicy> policy_;
  std::map<char, uint32_t> slot_of_;
};

}  // namespace berth::policy
