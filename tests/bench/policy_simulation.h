// A pool of exact capacity under a policy, and the best that any policy could do in it. A block is
// one chunk; a request hits up to its first missing block; then each of its blocks is touched or
// inserted, in order, one by one. No watermark: a victim leaves when a block needs its room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/policy/eviction.h"
#include "worker/replay/trace.h"

namespace berth::bench {

using Requests = std::span<const replay::Request>;

struct HitCount {
  uint64_t hits = 0;
  uint64_t blocks = 0;
  double ratio() const {
    return blocks == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(blocks);
  }
};

inline uint64_t spread(uint64_t x) {
  x = (x + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 30)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Requests before `counted_from` are played but not counted.
inline HitCount simulate(Requests requests, size_t capacity, policy::EvictionPolicy& policy,
                         size_t counted_from = 0) {
  std::unordered_map<uint64_t, uint32_t> slot_of;
  std::vector<uint64_t> block_in(capacity);
  std::vector<uint32_t> victims;
  const policy::Eligible anything = [](uint32_t) { return true; };
  HitCount count;
  for (size_t r = 0; r < requests.size(); ++r) {
    const std::vector<uint64_t>& chain = requests[r].hash_ids;
    size_t hits = 0;
    while (hits < chain.size() && slot_of.contains(chain[hits])) ++hits;
    if (r >= counted_from) {
      count.hits += hits;
      count.blocks += chain.size();
    }
    policy.request();
    for (size_t i = 0; i < chain.size(); ++i) {
      if (const auto it = slot_of.find(chain[i]); it != slot_of.end()) {
        policy.accessed({&it->second, 1});
        continue;
      }
      auto slot = static_cast<uint32_t>(slot_of.size());
      if (slot == capacity) {
        victims.clear();
        policy.pick(1, anything, victims);
        slot = victims.at(0);
        slot_of.erase(block_in[slot]);
      }
      slot_of[chain[i]] = slot;
      block_in[slot] = chain[i];
      policy.inserted({slot, spread(chain[i]), static_cast<uint32_t>(i), i + 1 == chain.size()});
    }
  }
  return count;
}

// Belady's MIN, which knows the future and need not keep a block that it was given: of everything
// resident and the block at hand, what is needed latest goes. No policy has more hits of single
// blocks, so none has more prefix hits. And it reaches that bound for prefix hits too: a block is
// never needed before its parent is, so a parent is never dropped before its child, what is
// resident is always whole prefixes, and every block that hits lies in the prefix that hits.
inline HitCount belady(Requests requests, size_t capacity, size_t counted_from = 0) {
  std::vector<std::pair<uint64_t, bool>> touches;  // block, whether it counts
  for (size_t r = 0; r < requests.size(); ++r)
    for (const uint64_t block : requests[r].hash_ids)
      touches.emplace_back(block, r >= counted_from);

  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> next(touches.size(), kNever);
  std::unordered_map<uint64_t, size_t> seen;
  for (size_t i = touches.size(); i-- > 0;) {
    const auto [it, is_new] = seen.try_emplace(touches[i].first, i);
    if (is_new) continue;
    next[i] = it->second;
    it->second = i;
  }

  HitCount count;
  std::set<size_t> resident;  // by the touch that needs the block next
  for (size_t i = 0; i < touches.size(); ++i) {
    const bool hit = resident.erase(i) > 0;
    if (touches[i].second) {
      ++count.blocks;
      count.hits += hit;
    }
    if (next[i] == kNever) continue;
    resident.insert(next[i]);
    if (resident.size() > capacity) resident.erase(std::prev(resident.end()));
  }
  return count;
}

}  // namespace berth::bench
