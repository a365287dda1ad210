#include "worker/pool/ledger.h"

#include <algorithm>

#include "common/check.h"
#include "common/text.h"

namespace berth::pool {
namespace {

uint64_t pages_for(uint64_t size_bytes, uint64_t page_bytes) {
  return size_bytes / page_bytes + (size_bytes % page_bytes != 0 ? 1 : 0);
}

bool is_well_formed(const LedgerGrant& grant) {
  return grant.replica.valid() && grant.size_bytes > 0 && !grant.digest.empty() &&
         grant.digest.size() <= kDigestBytesMax &&
         grant.digest.size() == grant.name_space.digest_bytes;
}

}  // namespace

// ---- Pools ----------------------------------------------------------------------------------

Result<> Ledger::add_pool(const LedgerPool& pool) {
  const std::string name = "pool " + to_text(pool.pool);
  if (!pool.pool.valid()) return refuse(Reason::kInvalidArgument, "a pool needs an id");
  if (find_pool(pool.pool)) return refuse(Reason::kIdInUse, name + " is in the ledger already");
  if (pool.page_bytes == 0 || pool.capacity_bytes == 0 ||
      pool.capacity_bytes % pool.page_bytes != 0)
    return refuse(Reason::kInvalidArgument,
                  name + ": capacity_bytes = " + std::to_string(pool.capacity_bytes) +
                      " is not a multiple of page_bytes = " + std::to_string(pool.page_bytes));
  if (pool.budget_bytes > pool.capacity_bytes)
    return refuse(Reason::kInvalidArgument,
                  name + ": budget_bytes = " + std::to_string(pool.budget_bytes) +
                      " is above capacity_bytes = " + std::to_string(pool.capacity_bytes));
  const uint64_t pages = pool.capacity_bytes / pool.page_bytes;
  if (pages > limits_.pages_max - page_count_)
    return refuse(Reason::kLimitReached, name + " has " + std::to_string(pages) +
                                             " pages; the pools of one worker have at most " +
                                             std::to_string(limits_.pages_max) +
                                             ", choose larger pages");
  if (pool_index_.size() >= limits_.pools_max)
    return refuse(Reason::kLimitReached,
                  name + ": a worker has at most " + std::to_string(limits_.pools_max) + " pools");
  const uint64_t budget = pool.budget_bytes == 0 ? pool.capacity_bytes : pool.budget_bytes;
  const uint32_t place = place_for_pool();
  pools_[place] = PoolState{.pool = pool.pool,
                            .page_bytes = pool.page_bytes,
                            .limit_pages = budget / pool.page_bytes,
                            .budget_bytes = budget,
                            .extents = ExtentMap(pages)};
  pool_index_.emplace(pool.pool.value(), place);
  page_count_ += pages;
  return {};
}

uint32_t Ledger::place_for_pool() {
  const auto unused = std::find_if(pools_.begin(), pools_.end(),
                                   [](const PoolState& pool) { return pool.removed; });
  if (unused != pools_.end()) return static_cast<uint32_t>(unused - pools_.begin());
  pools_.emplace_back().removed = true;
  return static_cast<uint32_t>(pools_.size() - 1);
}

Result<> Ledger::rename_pool(PoolId from, PoolId to) {
  PoolState* pool = find_pool(from);
  if (!pool) return refuse(Reason::kUnknownPool, "pool " + to_text(from) + " is not in the ledger");
  if (from == to) return {};
  if (!to.valid() || find_pool(to))
    return refuse(Reason::kIdInUse, "pool " + to_text(to) + " is in the ledger already");
  const uint32_t index = pool_index_.at(from.value());
  pool_index_.erase(from.value());
  pool_index_.emplace(to.value(), index);
  pool->pool = to;
  return {};
}

Result<> Ledger::remove_pool(PoolId pool_id) {
  PoolState* pool = find_pool(pool_id);
  if (!pool)
    return refuse(Reason::kUnknownPool, "pool " + to_text(pool_id) + " is not in the ledger");
  if (pool->replicas > 0)
    return refuse(Reason::kStillMapped, "pool " + to_text(pool_id) + " still holds " +
                                            std::to_string(pool->replicas) + " replicas, with " +
                                            std::to_string(pool->spans_out) + " spans out");
  const uint32_t index = pool_index_.at(pool_id.value());
  for (LedgerEntry& entry : slots_)
    if (entry.replica.valid() && entry.pool_index == index) erase(entry);
  pool_index_.erase(pool_id.value());
  page_count_ -= pool->extents.page_count();
  pool->removed = true;
  pool->extents = ExtentMap(0);
  return {};
}

// ---- Writing --------------------------------------------------------------------------------

Allocation Ledger::allocate(const LedgerGrant& grant) {
  if (!is_well_formed(grant)) return {.code = AllocateCode::kBadGrant};
  PoolState* pool = find_pool(grant.pool);
  if (!pool) return {.code = AllocateCode::kUnknownPool};
  if (find(grant.replica)) return {.code = AllocateCode::kDuplicate};
  if (reclaimed_count_ >= limits_.reclaimed_max) return {.code = AllocateCode::kLedgerFull};
  const uint64_t pages = pages_for(grant.size_bytes, pool->page_bytes);
  const uint64_t used = pool->extents.used_pages();
  if (used > pool->limit_pages || pages > pool->limit_pages - used)
    return {.code = AllocateCode::kOverLimit};
  const std::optional<uint32_t> namespace_index = intern(grant.name_space);
  if (!namespace_index) return {.code = AllocateCode::kLedgerFull};
  const std::optional<uint64_t> first_page = pool->extents.allocate(pages);
  if (!first_page) return {.code = AllocateCode::kNoHole};
  const LedgerEntry& entry = insert(grant, *namespace_index, *first_page * pool->page_bytes);
  return {.code = AllocateCode::kAllocated, .offset = entry.offset};
}

WrittenCode Ledger::written(SessionId client, ReplicaId replica) {
  LedgerEntry* entry = find_mutable(replica);
  if (!entry || entry->client != client) return WrittenCode::kUnknown;
  if (entry->state == LedgerState::kWritten || entry->state == LedgerState::kSealed)
    return WrittenCode::kWritten;
  set_writer_out(*entry, false);
  if (entry->state == LedgerState::kWriting && !entry->reclaim_asked) {
    set_state(*entry, LedgerState::kWritten);
    return WrittenCode::kWritten;
  }
  settle(*entry);
  return WrittenCode::kClosed;
}

bool Ledger::sealed(ReplicaId replica) {
  LedgerEntry* entry = find_mutable(replica);
  if (!entry) return false;
  if (entry->state == LedgerState::kWritten) set_state(*entry, LedgerState::kSealed);
  return entry->state == LedgerState::kSealed;
}

bool Ledger::abort(SessionId client, ReplicaId replica, WriterSpan span) {
  LedgerEntry* entry = find_mutable(replica);
  if (!entry) return true;
  if (entry->client != client) return false;
  if (span == WriterSpan::kReturned) set_writer_out(*entry, false);
  if (entry->is_open() && !entry->reclaim_asked)
    forget(*entry);
  else
    settle(*entry);
  entry = find_mutable(replica);
  return !entry || !entry->holds_pages();
}

// ---- Reading --------------------------------------------------------------------------------

SpanCode Ledger::judge(const SpanRequest& item) const {
  const LedgerEntry* entry = find(item.replica);
  if (!entry) return SpanCode::kUnknown;
  if (pool_of(*entry) != item.pool || entry->offset != item.offset ||
      entry->size_bytes != item.size_bytes)
    return SpanCode::kMoved;
  // WRITTEN counts: the server may have made it READY before this worker heard so.
  const bool is_readable =
      entry->state == LedgerState::kWritten || entry->state == LedgerState::kSealed;
  return is_readable && !entry->reclaim_asked ? SpanCode::kOpen : SpanCode::kNotReadable;
}

Result<std::vector<SpanCode>> Ledger::open_spans(LeaseId lease, SessionId client,
                                                 OperationNumber operation,
                                                 std::span<const SpanRequest> items) {
  std::vector<SpanCode> codes;
  codes.reserve(items.size());
  if (const auto held = leases_.find(lease); held != leases_.end()) {
    if (held->second.client != client)
      return refuse(Reason::kIdInUse, "lease " + to_text(lease) + " is held by another client");
    // Both lists are in the order of the first opening.
    auto next_own = held->second.replicas.begin();
    auto next_imported = held->second.imported.begin();
    for (const SpanRequest& item : items) {
      auto& opened = item.is_imported ? held->second.imported : held->second.replicas;
      auto& next = item.is_imported ? next_imported : next_own;
      const auto found = std::find(next, opened.end(), item.replica);
      const bool is_held = found != opened.end();
      if (is_held) next = found + 1;
      codes.push_back(is_held ? SpanCode::kOpen : SpanCode::kUnknown);
    }
    return codes;
  }
  if (leases_.size() >= limits_.leases_max)
    return refuse(Reason::kLimitReached, "this worker holds " + std::to_string(leases_.size()) +
                                             " leases, the most it may");
  if (items.size() > limits_.reader_spans_max - reader_spans_)
    return refuse(Reason::kLimitReached,
                  "with " + std::to_string(items.size()) + " more, more than " +
                      std::to_string(limits_.reader_spans_max) + " reader spans would be out");
  LedgerLease opened{.client = client, .operation = operation, .replicas = {}, .imported = {}};
  for (const SpanRequest& item : items) {
    codes.push_back(item.is_imported ? SpanCode::kOpen : judge(item));
    if (codes.back() == SpanCode::kOpen)
      (item.is_imported ? opened.imported : opened.replicas).push_back(item.replica);
  }
  if (opened.replicas.empty() && opened.imported.empty()) return codes;
  opened.replicas.shrink_to_fit();
  opened.imported.shrink_to_fit();
  count_imported(opened, +1);
  for (const ReplicaId replica : opened.replicas) count_reader(*find_mutable(replica), client, +1);
  ++spans_by_client_[client].leases;
  leases_by_client_.emplace(client, lease);
  leases_.emplace(lease, std::move(opened));
  return codes;
}

bool Ledger::close_spans(LeaseId lease) {
  const auto held = leases_.find(lease);
  if (held == leases_.end()) return false;
  close_lease(held);
  return true;
}

void Ledger::close_lease(LedgerLeases::iterator held) {
  const LeaseId lease = held->first;
  const LedgerLease closed = std::move(held->second);
  leases_.erase(held);
  leases_by_client_.erase({closed.client, lease});
  --spans_by_client_[closed.client].leases;
  count_imported(closed, -1);
  for (const ReplicaId replica : closed.replicas) {
    LedgerEntry& entry = *find_mutable(replica);
    count_reader(entry, closed.client, -1);
    settle(entry);
  }
  forget_idle_client(closed.client);
}

// ---- Giving back ----------------------------------------------------------------------------

void Ledger::reclaim(std::span<const ReplicaId> replicas) {
  for (const ReplicaId replica : replicas) {
    LedgerEntry* entry = find_mutable(replica);
    if (entry)
      reclaim_one(*entry);
    else
      acknowledge_.push_back(replica);
  }
}

void Ledger::reclaim_one(LedgerEntry& entry) {
  if (entry.state == LedgerState::kReclaimed) {  // the first acknowledgement may be lost
    acknowledge_.push_back(entry.replica);
    return;
  }
  entry.reclaim_asked = true;
  settle(entry);
}

void Ledger::forget(LedgerEntry& entry) {
  entry.reclaim_asked = false;
  set_state(entry, LedgerState::kForgotten);
  settle(entry);
}

void Ledger::settle(LedgerEntry& entry) {
  if (entry.has_span_out() || !entry.holds_pages()) return;
  if (entry.reclaim_asked) {
    free_pages(entry);
    acknowledge_.push_back(entry.replica);
  } else if (entry.state == LedgerState::kForgotten) {
    free_pages(entry);
    erase(entry);
  }
}

void Ledger::acked(std::span<const ReplicaId> replicas) {
  for (const ReplicaId replica : replicas)
    if (LedgerEntry* entry = find_mutable(replica); entry && !entry->holds_pages()) erase(*entry);
}

std::vector<ReplicaId> Ledger::drop_client(SessionId client) {
  while (true) {
    const auto lease = leases_by_client_.lower_bound({client, LeaseId()});
    if (lease == leases_by_client_.end() || lease->first != client) break;
    close_lease(leases_.find(lease->second));
  }
  std::vector<ReplicaId> open;
  for (const ReplicaId replica : open_of(client)) {
    LedgerEntry& entry = *find_mutable(replica);
    set_writer_out(entry, false);
    if (entry.is_open() && !entry.reclaim_asked) open.push_back(replica);
    settle(entry);
  }
  return open;
}

}  // namespace berth::pool
