// The obvious registry: a map from an object's key to its place. What a directory without
// durability, leases or budgets would hold; the baseline of what ours costs in memory and time.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "server/directory/records.h"

namespace berth::bench {

struct PlainFacts {
  uint64_t pool = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint32_t state = 0;
};

struct PlainHash {
  size_t operator()(const ObjectKey& key) const { return static_cast<size_t>(hash_of(key)); }
};

using PlainRegistry = std::unordered_map<ObjectKey, PlainFacts, PlainHash>;

}  // namespace berth::bench
