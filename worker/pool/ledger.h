// What one worker holds: which replica lies where in which pool, how far it is, and whose spans are
// out. It is the worker's half of the truth: the server says who may read and when memory may go,
// the ledger says what is really there, and nothing leaves before its last span is back.
//
// Pure: no clock, I/O, threads or chance; the order of every answer depends on ids alone. One
// caller at a time. Lookups are O(1), an entry costs under 150 bytes in all.
//
// It keeps its limits even when the server is wrong: a pool never holds more than its capacity and
// budget, an id is never held twice, and a span is only opened where the ledger holds exactly that
// ReplicaId at that offset and size (the generation check).
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/ids.h"
#include "worker/pool/extent_map.h"
#include "worker/pool/ledger_entry.h"

namespace berth::pool {

struct LedgerLimits {
  uint64_t pages_max = uint64_t{1} << 31;  // of all pools together; slots are 32-bit
  uint32_t pools_max = 1024;
  uint32_t namespaces_max = 65536;
  // RECLAIMED entries hold no pages, so the pools do not bound them: with more than this many
  // unconfirmed, the server has stopped listening and new grants are refused.
  uint64_t reclaimed_max = uint64_t{1} << 20;
  uint64_t leases_max = uint64_t{1} << 16;
  uint64_t reader_spans_max = uint64_t{1} << 24;  // 8 bytes each
};

class Ledger {
 public:
  explicit Ledger(LedgerLimits limits = {}) : limits_(limits) {}
  Ledger(Ledger&&) = default;
  Ledger& operator=(Ledger&&) = default;

  // ---- Pools ----
  // Errors: kIdInUse, kInvalidArgument (names the figure), kLimitReached.
  Result<> add_pool(const LedgerPool& pool);
  // The same memory under the id that another store or session gave it. Entries stay.
  // Errors: kUnknownPool, kIdInUse.
  Result<> rename_pool(PoolId from, PoolId to);
  // Forgets a pool and its RECLAIMED entries. Errors: kUnknownPool, kStillMapped (names what is
  // held).
  Result<> remove_pool(PoolId pool);

  // ---- Writing ----
  Allocation allocate(const LedgerGrant& grant);
  // The client finished the bytes and touches them no more.
  WrittenCode written(SessionId client, ReplicaId replica);
  // The server acknowledged the commit. False when it is neither WRITTEN nor SEALED.
  bool sealed(ReplicaId replica);
  // The reservation is over. True when it holds no pages now. False when a span keeps them
  // (FORGOTTEN, or a reclaim that waits), when it is SEALED or QUARANTINED, and when it is another
  // client's; the last three change nothing but the writer's span. Idempotent.
  bool abort(SessionId client, ReplicaId replica, WriterSpan span);

  // ---- Reading ----
  // Opens the items that pass the generation check; element i of the answer judges item i. Items
  // that pass are held under the lease; with none, no lease is kept. A lease that is held already
  // is not opened again: what it holds answers kOpen, the rest kUnknown.
  // Errors: kIdInUse (the lease is another client's), kLimitReached.
  Result<std::vector<SpanCode>> open_spans(LeaseId lease, SessionId client,
                                           OperationNumber operation,
                                           std::span<const SpanRequest> items);
  // The holder touches the spans of the lease no more. False when no such lease is held.
  bool close_spans(LeaseId lease);

  // ---- Giving back ----
  // Frees what no span keeps; the rest goes with its last span. Also for ids that are not held:
  // they hold no memory here, which is all that an acknowledgement says.
  void reclaim(std::span<const ReplicaId> replicas);
  // Reclaimed replicas that hold no memory any more, in the order in which they came free. Each is
  // named once for each reclaim; ask after every call that takes a span back or reclaims.
  std::vector<ReplicaId> take_acknowledgements() { return std::exchange(acknowledge_, {}); }
  // The server confirmed these acknowledgements.
  void acked(std::span<const ReplicaId> replicas);
  // The client is proven dead, or left: all its spans are back. Returns what is still WRITING or
  // WRITTEN, ascending: those operations are the caller's to end.
  std::vector<ReplicaId> drop_client(SessionId client);

  // ---- Re-attach ----
  // All that is to be reported: ids by pool, namespace, id. Taken once, then read in chunks; what
  // goes in between is skipped.
  std::vector<ReplicaId> reattach_order() const;
  // Entries from position `next` on, at most `max` (at least 1), all of one pool and namespace;
  // moves `next`. No entries: the end.
  LedgerChunkView reattach_chunk(std::span<const ReplicaId> order, size_t& next, size_t max) const;
  VerdictCode apply(Verdict verdict, ReplicaId replica);
  const LedgerLeases& leases() const { return leases_; }

  // ---- Views ----
  const LedgerEntry* find(ReplicaId replica) const;
  PoolId pool_of(const LedgerEntry& entry) const { return pools_[entry.pool_index].pool; }
  const LedgerNamespace& namespace_of(const LedgerEntry& entry) const {
    return namespaces_[entry.namespace_index];
  }
  // WRITING and WRITTEN ones, and those whose writer is still out, in ascending order of id.
  std::vector<ReplicaId> open_of(SessionId client) const;
  // Every client that has a span out or an open replica, ascending.
  std::vector<SessionId> clients() const;
  ClientSpans spans_of(SessionId client) const;
  std::vector<PoolId> pools() const;  // ascending
  std::optional<LedgerUsage> usage(PoolId pool) const;
  uint64_t entry_count() const { return slot_of_.size(); }
  uint64_t reclaimed_count() const { return reclaimed_count_; }

  // The first broken invariant as a sentence; empty when all hold. O(entries).
  std::string check_invariants() const;

 private:
  struct PoolState {
    PoolId pool;
    uint64_t page_bytes = 1;
    uint64_t limit_pages = 0;  // the smaller of capacity and budget
    uint64_t budget_bytes = 0;
    ExtentMap extents{0};
    std::array<uint64_t, kLedgerStateCount> pages_by_state{};
    uint64_t replicas = 0;
    uint64_t spans_out = 0;
    bool removed = false;  // the next pool takes its place
  };

  LedgerEntry* find_mutable(ReplicaId replica);
  PoolState* find_pool(PoolId pool);
  const PoolState* find_pool(PoolId pool) const;
  uint32_t place_for_pool();
  std::optional<uint32_t> intern(const LedgerNamespace& name_space);
  uint64_t pages_of(const LedgerEntry& entry) const;
  SpanCode judge(const SpanRequest& item) const;

  // The only places that change these, so that every count moves with the entry.
  LedgerEntry& insert(const LedgerGrant& grant, uint32_t namespace_index, uint64_t offset);
  void set_state(LedgerEntry& entry, LedgerState state);
  void set_writer_out(LedgerEntry& entry, bool out);
  void count_reader(LedgerEntry& entry, SessionId client, int change);
  void count_imported(const LedgerLease& lease, int sign);
  void update_open_index(const LedgerEntry& entry);
  void forget_idle_client(SessionId client);
  void free_pages(LedgerEntry& entry);
  void erase(LedgerEntry& entry);

  // Lets go of what no span keeps any more. The entry may be gone afterwards.
  void settle(LedgerEntry& entry);
  void reclaim_one(LedgerEntry& entry);
  void forget(LedgerEntry& entry);
  void close_lease(LedgerLeases::iterator held);

  struct Recount;  // what every count must be, from entries and leases alone
  std::string check_leases(Recount& recount) const;
  std::string check_entry(const LedgerEntry& entry, Recount& recount) const;
  std::string check_pages(const LedgerEntry& entry, Recount& recount) const;
  std::string check_pool(uint32_t index, Recount& recount) const;
  std::string check_totals(const Recount& recount) const;

  LedgerLimits limits_;
  std::vector<PoolState> pools_;
  absl::flat_hash_map<uint64_t, uint32_t> pool_index_;
  std::vector<LedgerNamespace> namespaces_;
  absl::btree_map<LedgerNamespace, uint32_t> namespace_index_;
  std::deque<LedgerEntry> slots_;
  std::vector<uint32_t> free_slots_;
  absl::flat_hash_map<uint64_t, uint32_t> slot_of_;  // never iterated: order would show
  std::vector<ReplicaId> acknowledge_;
  LedgerLeases leases_;
  absl::btree_set<std::pair<SessionId, LeaseId>> leases_by_client_;
  absl::btree_set<std::pair<SessionId, ReplicaId>> open_by_client_;
  absl::btree_map<SessionId, ClientSpans> spans_by_client_;
  uint64_t page_count_ = 0;
  uint64_t reclaimed_count_ = 0;
  uint64_t reader_spans_ = 0;
};

}  // namespace berth::pool
