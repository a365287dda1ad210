// What the ledger tells: names, figures for heartbeats and usage views, lists by client.
#include <algorithm>
#include <set>

#include "worker/pool/ledger.h"

namespace berth::pool {
std::string_view name_of(LedgerState state) {
  switch (state) {
    case LedgerState::kWriting:
      return "writing";
    case LedgerState::kWritten:
      return "written";
    case LedgerState::kSealed:
      return "sealed";
    case LedgerState::kReclaimed:
      return "reclaimed";
    case LedgerState::kQuarantined:
      return "quarantined";
    case LedgerState::kForgotten:
      return "forgotten";
  }
  return "invalid";
}

std::string_view name_of(AllocateCode code) {
  switch (code) {
    case AllocateCode::kAllocated:
      return "allocated";
    case AllocateCode::kNoHole:
      return "no_hole";
    case AllocateCode::kOverLimit:
      return "over_limit";
    case AllocateCode::kDuplicate:
      return "duplicate";
    case AllocateCode::kUnknownPool:
      return "unknown_pool";
    case AllocateCode::kBadGrant:
      return "bad_grant";
    case AllocateCode::kLedgerFull:
      return "ledger_full";
  }
  return "invalid";
}

std::vector<ReplicaId> Ledger::open_of(SessionId client) const {
  std::vector<ReplicaId> open;
  for (auto it = open_by_client_.lower_bound({client, ReplicaId()});
       it != open_by_client_.end() && it->first == client; ++it)
    open.push_back(it->second);
  return open;
}

std::vector<SessionId> Ledger::clients() const {
  std::set<SessionId> found;
  for (const auto& [client, spans] : spans_by_client_) found.insert(client);
  for (const auto& [client, replica] : open_by_client_) found.insert(client);
  return {found.begin(), found.end()};
}

ClientSpans Ledger::spans_of(SessionId client) const {
  const auto spans = spans_by_client_.find(client);
  return spans == spans_by_client_.end() ? ClientSpans{} : spans->second;
}

std::vector<PoolId> Ledger::pools() const {
  std::vector<PoolId> ids;
  for (const PoolState& pool : pools_)
    if (!pool.removed) ids.push_back(pool.pool);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<LedgerUsage> Ledger::usage(PoolId pool_id) const {
  const PoolState* pool = find_pool(pool_id);
  if (!pool) return std::nullopt;
  const auto bytes_in = [pool](LedgerState state) {
    return pool->pages_by_state[static_cast<size_t>(state)] * pool->page_bytes;
  };
  return LedgerUsage{.pool = pool_id,
                     .page_bytes = pool->page_bytes,
                     .capacity_bytes = pool->extents.page_count() * pool->page_bytes,
                     .budget_bytes = pool->budget_bytes,
                     .allocated_bytes = pool->extents.used_pages() * pool->page_bytes,
                     .writing_bytes = bytes_in(LedgerState::kWriting),
                     .written_bytes = bytes_in(LedgerState::kWritten),
                     .sealed_bytes = bytes_in(LedgerState::kSealed),
                     .quarantined_bytes = bytes_in(LedgerState::kQuarantined),
                     .forgotten_bytes = bytes_in(LedgerState::kForgotten),
                     .free_bytes = pool->extents.free_pages() * pool->page_bytes,
                     .largest_hole_bytes = pool->extents.largest_run() * pool->page_bytes,
                     .replicas = pool->replicas,
                     .spans_out = pool->spans_out};
}

}  // namespace berth::pool
