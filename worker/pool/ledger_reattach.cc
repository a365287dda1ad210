// The ledger's part of a re-attach: what is reported, and what the server's verdict does.
#include <algorithm>
#include <tuple>

#include "worker/pool/ledger.h"

namespace berth::pool {

std::vector<ReplicaId> Ledger::reattach_order() const {
  struct Key {
    PoolId pool;
    uint32_t namespace_index;
    ReplicaId replica;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> keys;
  keys.reserve(slot_of_.size());
  for (const LedgerEntry& entry : slots_)
    if (entry.replica.valid() && entry.state != LedgerState::kForgotten)
      keys.push_back({pool_of(entry), entry.namespace_index, entry.replica});
  std::sort(keys.begin(), keys.end());
  std::vector<ReplicaId> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(key.replica);
  return order;
}

LedgerChunkView Ledger::reattach_chunk(std::span<const ReplicaId> order, size_t& next,
                                       size_t max) const {
  LedgerChunkView chunk;
  for (; next < order.size() && chunk.entries.size() < max; ++next) {
    const LedgerEntry* entry = find(order[next]);
    if (!entry || entry->state == LedgerState::kForgotten) continue;
    if (chunk.entries.empty()) {
      chunk.pool = pool_of(*entry);
      chunk.name_space = namespace_of(*entry);
    } else if (pool_of(*entry) != chunk.pool || namespace_of(*entry) != chunk.name_space) {
      break;
    }
    chunk.entries.push_back(entry);
  }
  return chunk;
}

VerdictCode Ledger::apply(Verdict verdict, ReplicaId replica) {
  LedgerEntry* entry = find_mutable(replica);
  // Forgotten since it was reported: the server hears of that by itself.
  if (!entry || entry->state == LedgerState::kForgotten) return VerdictCode::kUnknown;
  const bool is_reclaimed = entry->state == LedgerState::kReclaimed;
  const auto freed_or_waiting = [&] {
    const LedgerEntry* left = find(replica);
    return left && left->holds_pages() ? VerdictCode::kWaiting : VerdictCode::kFreed;
  };
  switch (verdict) {
    case Verdict::kKeep:
    case Verdict::kAdopted:
      if (is_reclaimed) return VerdictCode::kNonsense;
      if (verdict == Verdict::kAdopted && entry->state != LedgerState::kSealed)
        return VerdictCode::kNonsense;
      entry->reclaim_asked = false;  // the server's present word replaces its earlier one
      return VerdictCode::kKept;
    case Verdict::kFree:
      if (is_reclaimed)
        erase(*entry);
      else
        forget(*entry);
      return freed_or_waiting();
    case Verdict::kReclaim:
      reclaim_one(*entry);
      return freed_or_waiting();
    case Verdict::kQuarantine:
      if (is_reclaimed) return VerdictCode::kNonsense;
      entry->reclaim_asked = false;
      set_state(*entry, LedgerState::kQuarantined);
      return VerdictCode::kQuarantined;
  }
  return VerdictCode::kNonsense;
}

}  // namespace berth::pool
