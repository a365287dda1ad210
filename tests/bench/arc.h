// ARC (Megiddo and Modha, FAST 2003), for comparison only: two lists, of what was used once and
// more often, whose shares move with the hits in the ghosts behind each. Plain containers; its
// ghosts hold whole keys and cost what they cost.
#pragma once

#include <algorithm>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/policy/eviction.h"

namespace berth::bench {

class Arc final : public policy::EvictionPolicy {
 public:
  explicit Arc(size_t capacity) : capacity_(capacity) {}

  void request() override {}

  void accessed(std::span<const uint32_t> slots) override {
    for (const uint32_t slot : slots)
      if (const auto it = key_of_.find(slot); it != key_of_.end()) move(it->second, kOften);
  }

  void inserted(const policy::Chunk& chunk) override {
    key_of_[chunk.slot] = chunk.key_hash;
    if (const auto it = entries_.find(chunk.key_hash); it != entries_.end()) {
      it->second.slot = chunk.slot;
      adapt(it->second.list);
      move(chunk.key_hash, kOften);
      return;
    }
    lists_[kOnce].push_front(chunk.key_hash);
    entries_[chunk.key_hash] = {kOnce, chunk.slot, lists_[kOnce].begin()};
    while (length(kOnce) + length(kOnceGhosts) > capacity_ && length(kOnceGhosts) > 0)
      forget_oldest(kOnceGhosts);
    while (entries_.size() > 2 * capacity_ && length(kOftenGhosts) > 0) forget_oldest(kOftenGhosts);
  }

  void removed(uint32_t slot) override {
    const auto it = key_of_.find(slot);
    if (it == key_of_.end()) return;
    const auto entry = entries_.find(it->second);
    lists_[entry->second.list].erase(entry->second.place);
    entries_.erase(entry);
    key_of_.erase(it);
  }

  void pick(size_t n, const policy::Eligible&, std::vector<uint32_t>& victims) override {
    for (; n > 0 && size() > 0; --n) {
      const bool from_once = length(kOnce) > 0 &&
                             (static_cast<double>(length(kOnce)) > target_ || length(kOften) == 0);
      const uint64_t key = lists_[from_once ? kOnce : kOften].back();
      const uint32_t slot = entries_.at(key).slot;
      move(key, from_once ? kOnceGhosts : kOftenGhosts);
      key_of_.erase(slot);
      victims.push_back(slot);
    }
  }

  size_t size() const override { return key_of_.size(); }
  size_t memory_bytes() const override {
    // Roughly: list node, two map nodes with their buckets.
    return entries_.size() * (24 + 48 + 8) + key_of_.size() * (32 + 8);
  }
  std::string describe() const override {
    return "share of what was used once: " + std::to_string(target_);
  }

 private:
  enum Which : size_t { kOnce, kOften, kOnceGhosts, kOftenGhosts, kLists };
  struct Entry {
    Which list = kOnce;
    uint32_t slot = 0;
    std::list<uint64_t>::iterator place;
  };

  size_t length(Which which) const { return lists_[which].size(); }

  void move(uint64_t key, Which to) {
    Entry& entry = entries_.at(key);
    lists_[to].splice(lists_[to].begin(), lists_[entry.list], entry.place);
    entry.list = to;
  }

  void forget_oldest(Which which) {
    entries_.erase(lists_[which].back());
    lists_[which].pop_back();
  }

  void adapt(Which found_in) {
    const auto once = static_cast<double>(length(kOnceGhosts));
    const auto often = static_cast<double>(length(kOftenGhosts));
    if (found_in == kOnceGhosts)
      target_ = std::min(static_cast<double>(capacity_),
                         target_ + std::max(1.0, often / std::max(1.0, once)));
    else
      target_ = std::max(0.0, target_ - std::max(1.0, once / std::max(1.0, often)));
  }

  size_t capacity_;
  double target_ = 0;
  std::list<uint64_t> lists_[kLists];
  std::unordered_map<uint64_t, Entry> entries_;
  std::unordered_map<uint32_t, uint64_t> key_of_;
};

}  // namespace berth::bench
