// The half of the ledger that keeps counts and indexes true: each function changes one fact of an
// entry and everything that counts it.
#include "common/check.h"
#include "worker/pool/ledger.h"

namespace berth::pool {

LedgerEntry* Ledger::find_mutable(ReplicaId replica) {
  const auto slot = slot_of_.find(replica.value());
  return slot == slot_of_.end() ? nullptr : &slots_[slot->second];
}

const LedgerEntry* Ledger::find(ReplicaId replica) const {
  const auto slot = slot_of_.find(replica.value());
  return slot == slot_of_.end() ? nullptr : &slots_[slot->second];
}

Ledger::PoolState* Ledger::find_pool(PoolId pool) {
  const auto index = pool_index_.find(pool.value());
  return index == pool_index_.end() ? nullptr : &pools_[index->second];
}

const Ledger::PoolState* Ledger::find_pool(PoolId pool) const {
  const auto index = pool_index_.find(pool.value());
  return index == pool_index_.end() ? nullptr : &pools_[index->second];
}

std::optional<uint32_t> Ledger::intern(const LedgerNamespace& name_space) {
  if (const auto known = namespace_index_.find(name_space); known != namespace_index_.end())
    return known->second;
  if (namespaces_.size() >= limits_.namespaces_max) return std::nullopt;
  const auto index = static_cast<uint32_t>(namespaces_.size());
  namespaces_.push_back(name_space);
  namespace_index_.emplace(name_space, index);
  return index;
}

uint64_t Ledger::pages_of(const LedgerEntry& entry) const {
  const uint64_t page_bytes = pools_[entry.pool_index].page_bytes;
  return entry.size_bytes / page_bytes + (entry.size_bytes % page_bytes != 0 ? 1 : 0);
}

LedgerEntry& Ledger::insert(const LedgerGrant& grant, uint32_t namespace_index, uint64_t offset) {
  uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  LedgerEntry& entry = slots_[slot];
  entry = LedgerEntry{.replica = grant.replica,
                      .client = grant.client,
                      .operation = grant.operation,
                      .offset = offset,
                      .size_bytes = grant.size_bytes,
                      .namespace_index = namespace_index,
                      .pool_index = pool_index_.at(grant.pool.value()),
                      .shard = grant.shard,
                      .part = grant.part,
                      .digest_bytes = static_cast<uint8_t>(grant.digest.size())};
  grant.digest.copy(entry.digest_padded.data(), entry.digest_padded.size());
  slot_of_.emplace(grant.replica.value(), slot);
  PoolState& pool = pools_[entry.pool_index];
  pool.pages_by_state[static_cast<size_t>(entry.state)] += pages_of(entry);
  ++pool.replicas;
  set_writer_out(entry, true);
  return entry;
}

void Ledger::set_state(LedgerEntry& entry, LedgerState state) {
  BERTH_CHECK(entry.holds_pages() && state != LedgerState::kReclaimed,
              "only free_pages() ends the holding of pages");
  PoolState& pool = pools_[entry.pool_index];
  const uint64_t pages = pages_of(entry);
  const bool was_open = entry.is_open();
  pool.pages_by_state[static_cast<size_t>(entry.state)] -= pages;
  pool.pages_by_state[static_cast<size_t>(state)] += pages;
  entry.state = state;
  if (entry.is_open() != was_open) update_open_index(entry);
}

void Ledger::set_writer_out(LedgerEntry& entry, bool out) {
  if (entry.writer_out == out) return;
  entry.writer_out = out;
  ClientSpans& spans = spans_by_client_[entry.client];
  PoolState& pool = pools_[entry.pool_index];
  if (out) {
    ++spans.writers;
    ++pool.spans_out;
    spans.bytes += entry.size_bytes;
  } else {
    --spans.writers;
    --pool.spans_out;
    spans.bytes -= entry.size_bytes;
  }
  if (out || !entry.is_open()) update_open_index(entry);
  forget_idle_client(entry.client);
}

void Ledger::count_reader(LedgerEntry& entry, SessionId client, int change) {
  ClientSpans& spans = spans_by_client_[client];
  PoolState& pool = pools_[entry.pool_index];
  if (change > 0) {
    ++entry.readers, ++reader_spans_, ++spans.readers, ++pool.spans_out;
    spans.bytes += entry.size_bytes;
  } else {
    BERTH_CHECK(entry.readers > 0, "a reader that was never counted is leaving");
    --entry.readers, --reader_spans_, --spans.readers, --pool.spans_out;
    spans.bytes -= entry.size_bytes;
  }
}

// Their bytes are counted where they lie.
void Ledger::count_imported(const LedgerLease& lease, int sign) {
  if (lease.imported.empty()) return;
  const uint64_t spans = lease.imported.size();
  ClientSpans& of_client = spans_by_client_[lease.client];
  of_client.readers = sign > 0 ? of_client.readers + spans : of_client.readers - spans;
  reader_spans_ = sign > 0 ? reader_spans_ + spans : reader_spans_ - spans;
}

void Ledger::update_open_index(const LedgerEntry& entry) {
  if (entry.is_open() || entry.writer_out)
    open_by_client_.emplace(entry.client, entry.replica);
  else
    open_by_client_.erase({entry.client, entry.replica});
}

void Ledger::forget_idle_client(SessionId client) {
  const auto spans = spans_by_client_.find(client);
  if (spans != spans_by_client_.end() && spans->second == ClientSpans{})
    spans_by_client_.erase(spans);
}

void Ledger::free_pages(LedgerEntry& entry) {
  BERTH_CHECK(entry.holds_pages() && !entry.has_span_out(),
              "pages are freed once, and never under a span");
  PoolState& pool = pools_[entry.pool_index];
  const uint64_t pages = pages_of(entry);
  const bool was_open = entry.is_open();
  pool.extents.free(entry.offset / pool.page_bytes, pages);
  pool.pages_by_state[static_cast<size_t>(entry.state)] -= pages;
  --pool.replicas;
  entry.state = LedgerState::kReclaimed;
  entry.reclaim_asked = false;
  ++reclaimed_count_;
  if (was_open) update_open_index(entry);
}

void Ledger::erase(LedgerEntry& entry) {
  BERTH_CHECK(!entry.holds_pages(), "an entry that holds pages is never forgotten");
  const auto slot = slot_of_.find(entry.replica.value());
  free_slots_.push_back(slot->second);
  slot_of_.erase(slot);
  --reclaimed_count_;
  entry = LedgerEntry{};
}

}  // namespace berth::pool
