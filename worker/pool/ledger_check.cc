// The invariants of the ledger, recounted from entries and leases alone and compared with every
// count and index that the everyday code keeps.
#include <map>

#include "common/text.h"
#include "worker/pool/ledger.h"

namespace berth::pool {

struct Ledger::Recount {
  struct InPool {
    std::array<uint64_t, kLedgerStateCount> pages_by_state{};
    uint64_t replicas = 0;
    uint64_t spans_out = 0;
    std::map<uint64_t, uint64_t> runs;  // first page -> pages
  };
  std::map<uint32_t, InPool> pools;
  std::map<SessionId, ClientSpans> clients;
  std::map<ReplicaId, uint32_t> readers;
  uint64_t reader_spans = 0;
  uint64_t entries = 0;
  uint64_t reclaimed = 0;
  uint64_t open = 0;
};

namespace {

std::string text_of(const LedgerEntry& entry) {
  return "replica " + to_text(entry.replica) + " (" + std::string(name_of(entry.state)) + ")";
}

}  // namespace

std::string Ledger::check_invariants() const {
  Recount recount;
  if (std::string broken = check_leases(recount); !broken.empty()) return broken;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const LedgerEntry& entry = slots_[slot];
    if (!entry.replica.valid()) continue;
    const auto found = slot_of_.find(entry.replica.value());
    if (found == slot_of_.end() || found->second != slot)
      return text_of(entry) + " is not found by its id";
    if (std::string broken = check_entry(entry, recount); !broken.empty()) return broken;
  }
  for (uint32_t index = 0; index < pools_.size(); ++index) {
    if (pools_[index].removed) continue;
    if (std::string broken = check_pool(index, recount); !broken.empty()) return broken;
  }
  return check_totals(recount);
}

std::string Ledger::check_leases(Recount& recount) const {
  for (const auto& [lease, held] : leases_) {
    const std::string name = "lease " + to_text(lease);
    if (held.replicas.empty() && held.imported.empty()) return name + " is held with no span";
    if (!leases_by_client_.contains({held.client, lease}))
      return name + " is missing in its client's index";
    ClientSpans& spans = recount.clients[held.client];
    ++spans.leases;
    spans.readers += held.imported.size();
    recount.reader_spans += held.imported.size();
    for (const ReplicaId replica : held.replicas) {
      const LedgerEntry* entry = find(replica);
      if (!entry) return name + " reads replica " + to_text(replica) + ", which is not held";
      ++recount.readers[replica];
      ++recount.reader_spans;
      ++spans.readers;
      spans.bytes += entry->size_bytes;
    }
  }
  if (leases_by_client_.size() != leases_.size())
    return "a client's index names a lease that is not held";
  return {};
}

std::string Ledger::check_entry(const LedgerEntry& entry, Recount& recount) const {
  const auto readers = recount.readers.find(entry.replica);
  if (entry.readers != (readers == recount.readers.end() ? 0 : readers->second))
    return text_of(entry) + " counts " + std::to_string(entry.readers) +
           " readers, the leases another number";
  const bool is_complete =
      entry.state == LedgerState::kWritten || entry.state == LedgerState::kSealed;
  if (entry.writer_out && is_complete) return text_of(entry) + " still has its writer's span out";
  if (!entry.has_span_out() && (entry.reclaim_asked || entry.state == LedgerState::kForgotten))
    return text_of(entry) + " waits although no span of it is out";
  const bool is_listed = open_by_client_.contains({entry.client, entry.replica});
  if ((entry.is_open() || entry.writer_out) != is_listed)
    return text_of(entry) + " disagrees with the index of open replicas";

  ++recount.entries;
  if (is_listed) ++recount.open;
  if (entry.writer_out) {
    ++recount.clients[entry.client].writers;
    recount.clients[entry.client].bytes += entry.size_bytes;
  }
  if (entry.holds_pages()) return check_pages(entry, recount);
  if (entry.has_span_out()) return text_of(entry) + " holds no pages but has a span out";
  ++recount.reclaimed;
  return {};
}

std::string Ledger::check_pages(const LedgerEntry& entry, Recount& recount) const {
  const PoolState& pool = pools_[entry.pool_index];
  if (pool.removed) return text_of(entry) + " lies in a pool that was removed";
  const uint64_t first = entry.offset / pool.page_bytes;
  const uint64_t pages = pages_of(entry);
  if (entry.offset % pool.page_bytes != 0 || !pool.extents.is_used(first, pages))
    return text_of(entry) + " lies on pages that count as free";
  Recount::InPool& in_pool = recount.pools[entry.pool_index];
  if (!in_pool.runs.emplace(first, pages).second)
    return text_of(entry) + " starts where another replica starts";
  in_pool.pages_by_state[static_cast<size_t>(entry.state)] += pages;
  in_pool.spans_out += entry.readers + (entry.writer_out ? 1 : 0);
  ++in_pool.replicas;
  return {};
}

std::string Ledger::check_pool(uint32_t index, Recount& recount) const {
  const PoolState& pool = pools_[index];
  const Recount::InPool& in_pool = recount.pools[index];
  const std::string name = "pool " + to_text(pool.pool);
  if (std::string broken = pool.extents.check_invariants(); !broken.empty())
    return name + ": " + broken;
  if (pool.pages_by_state != in_pool.pages_by_state || pool.replicas != in_pool.replicas ||
      pool.spans_out != in_pool.spans_out)
    return name + " counts other pages, replicas or spans than its entries have";
  uint64_t end = 0;
  uint64_t used = 0;
  for (const auto& [first, pages] : in_pool.runs) {
    if (first < end) return name + ": two replicas share page " + std::to_string(first);
    end = first + pages;
    used += pages;
  }
  if (used != pool.extents.used_pages())
    return name + " has " + std::to_string(pool.extents.used_pages()) +
           " pages in use, its entries have " + std::to_string(used);
  if (used > pool.limit_pages) return name + " holds more than its capacity or budget";
  return {};
}

std::string Ledger::check_totals(const Recount& recount) const {
  if (recount.entries != slot_of_.size()) return "the index of replicas names one that is not held";
  if (recount.entries + free_slots_.size() != slots_.size()) return "a slot of the ledger is lost";
  if (recount.reclaimed != reclaimed_count_) return "reclaimed replicas are counted wrong";
  if (recount.reader_spans != reader_spans_) return "reader spans are counted wrong";
  if (recount.open != open_by_client_.size())
    return "the index of open replicas names one that is closed";
  for (const auto& [client, spans] : recount.clients)
    if (spans_of(client) != spans)
      return "client " + to_text(client) + " counts other spans than it has out";
  if (recount.clients.size() != spans_by_client_.size())
    return "spans are counted for a client that has none out";
  return {};
}

}  // namespace berth::pool
