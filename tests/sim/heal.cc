// Faults are over: everybody answers, the dead are proven dead, engines leave. Whatever is then
// still held, charged or waiting is a leak.
#include <algorithm>

#include "common/text.h"
#include "tests/sim/describe.h"
#include "tests/sim/world.h"

namespace berth::sim {
namespace {

constexpr int64_t kRound = 500;
// Enough for every deadline, retry and back-off of the slowest weather, several times over.
constexpr int kRoundsMax = 240;

}  // namespace

void World::heal() {
  judge_.trace([] { return "---- healing"; });
  weather_.call_lost = weather_.call_doubled = 0;
  server_.disk().mend();
  server_.disk().fail_next(MemoryDisk::Fault::kNone);
  server_.go_on();
  for (const auto& worker : workers_) worker->go_on();
  for (const auto& engine : engines_) {
    engine->go_on();
    engine->end_all_forks();
  }
  wind_up();
  if (judge_.failed()) return;
  unpin_everything();
  evict_all();
}

void World::wind_up() {
  std::string left = "nothing was looked at";
  for (int round = 0; round < kRoundsMax && !left.empty() && !judge_.failed(); ++round) {
    if (!server_.is_running()) start_server_later(0);
    for (size_t i = 0; i < workers_.size(); ++i)
      if (!workers_[i]->is_running()) start_worker(i);
    let_some_time_pass(kRound);
    std::string staying;
    for (const auto& engine : engines_)
      if (!engine->wind_up()) staying = engine->standing();
    left = staying.empty() ? leftovers() : staying;
  }
  judge_.expect(left.empty(), [&] { return "after healing: " + left; });
  judge_.trace([&] { return server_.policies(); });
  if (server_.is_running() && judge_.failed())
    judge_.trace([&] { return "directory:\n" + describe(server_.directory()); });
}

void World::unpin_everything() {
  for (size_t index = 0; index < kNamespaceCount; ++index) {
    UnpinChunks unpin{namespace_spec(index).name(), {}};
    for (uint64_t number = 0; number < weather_.chunk_count; ++number) {
      const std::string bytes = Chunk{index, number}.digest();
      std::copy(bytes.begin(), bytes.end(), unpin.digests.emplace_back().bytes.begin());
    }
    command(std::move(unpin));
  }
}

void World::evict_all() {
  std::string left = "nothing was looked at";
  for (int round = 0; round < kRoundsMax && !left.empty() && !judge_.failed(); ++round) {
    Evict evict;
    for (const auto& [id, entry] : server_.directory().pools())
      for (uint32_t slot = entry.head; slot != ReplicaTable::kNone && evict.replicas.size() < 32;
           slot = server_.directory().replicas().at(slot).pool_next)
        evict.replicas.push_back(server_.directory().replicas().at(slot).replica.id);
    if (!evict.replicas.empty()) command(std::move(evict));
    let_some_time_pass(kRound);
    left = leftovers();
    for (const auto& [id, entry] : server_.directory().pools())
      if (left.empty() && entry.usage.allocated_bytes() != 0)
        left = "pool " + to_text(id) + " is still charged " +
               std::to_string(entry.usage.allocated_bytes()) + " bytes";
    for (const auto& worker : workers_)
      if (left.empty() && worker->ledger()->entry_count() != 0)
        left =
            "a worker still holds " + std::to_string(worker->ledger()->entry_count()) + " replicas";
  }
  judge_.expect(left.empty(), [&] { return "after everything was evicted: " + left; });
}

// What should not be there once nobody is there but servers and workers; empty: all is well.
std::string World::leftovers() const {
  if (!server_.is_running() || server_.is_degraded()) return "the server is not back";
  const Directory& d = server_.directory();
  for (const auto& [id, session] : d.sessions())
    if (session.role == Role::kClient) return "client session " + to_text(id) + " is still there";
  if (!d.reservations().empty())
    return "reservation " + to_text(d.reservations().begin()->first) + " is still open";
  if (!d.leases().empty()) return "lease " + to_text(d.leases().begin()->first) + " is still held";
  if (!d.operations().empty()) return "an operation is still kept";
  if (!d.jobs().empty()) return "job " + to_text(d.jobs().begin()->first) + " is not done";
  for (const auto& [id, entry] : d.pools()) {
    if (entry.pool.state == PoolState::kGone) return "pool " + to_text(id) + " is gone and charged";
    if (entry.usage.retiring_bytes != 0) return "pool " + to_text(id) + " still retires";
    if (entry.usage.quarantined_bytes != 0) return "pool " + to_text(id) + " has a quarantine";
    if (entry.usage.reserved_bytes != 0) return "pool " + to_text(id) + " has reserved bytes";
    if (entry.pool.state == PoolState::kDraining && entry.usage.replicas() != 0)
      return "pool " + to_text(id) + " was drained and is not empty";
  }
  if (std::string full = witness_.room().overfull(d, server_.now()); !full.empty()) return full;
  for (const auto& worker : workers_)
    if (std::string broken = difference(*worker); !broken.empty()) return broken;
  return unshared();
}

// Every HOST pool in use is read through every other worker of its host, and no other pool is.
std::string World::unshared() const {
  const Directory& d = server_.directory();
  for (const auto& [id, entry] : d.pools()) {
    const Pool& pool = entry.pool;
    const bool is_shared =
        weather_.shares_pools && pool.spec.scope == Scope::kHost && pool.state == PoolState::kOpen;
    for (const auto& [session, worker] : d.sessions()) {
      if (worker.role != Role::kWorker) continue;
      const auto imported = std::count_if(pool.exports.begin(), pool.exports.end(),
                                          [&, importer = session](const PoolExport& e) {
                                            return e.importer == importer && e.imported;
                                          });
      const bool is_neighbour = worker.node == pool.node && session != pool.owner;
      if (imported != (is_shared && is_neighbour ? 1 : 0))
        return "pool " + to_text(id) + " has " + std::to_string(imported) + " imports by " +
               worker.name;
    }
    for (const PoolExport& e : pool.exports)
      if (!e.importer.valid()) return "pool " + to_text(id) + " is exported to a dead worker";
  }
  return "";
}

// The directory and a worker's ledger, item by item.
std::string World::difference(const Worker& worker) const {
  if (!worker.is_running() || !worker.agent()->is_attached()) return "a worker is not attached";
  const Directory& d = server_.directory();
  const pool::Ledger& ledger = *worker.ledger();
  if (worker.agent()->client_count() != 0) return "a worker still has clients";
  size_t ready = 0;
  for (const PoolId id : ledger.pools()) {
    const PoolEntry* entry = d.find_pool(id);
    if (!entry) return "a worker has pool " + to_text(id) + ", the directory has not";
    for (uint32_t slot = entry->head; slot != ReplicaTable::kNone;
         slot = d.replicas().at(slot).pool_next) {
      const Replica& replica = d.replicas().at(slot).replica;
      const pool::LedgerEntry* held = ledger.find(replica.id);
      if (!held || held->state != pool::LedgerState::kSealed || held->offset != replica.offset ||
          held->size_bytes != replica.size_bytes || held->has_span_out())
        return "replica " + to_text(replica.id) + " and its owner's ledger differ";
      ++ready;
    }
  }
  if (ledger.entry_count() - ledger.reclaimed_count() != ready)
    return "a worker holds " + std::to_string(ledger.entry_count() - ledger.reclaimed_count()) +
           " replicas, the directory knows " + std::to_string(ready);
  return "";
}

}  // namespace berth::sim
