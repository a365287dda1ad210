// Handlers of re-attach: the owner says what its ledger holds, the directory judges it item by
// item. Nothing is judged missing before the end marker. The table of outcomes is in
// docs/architecture.md; verdict_on() is that table.
#include "common/text.h"
#include "server/directory/context.h"

namespace berth {

Result<Outcome> handle(const Context& c, const BeginReattach& command) {
  const Session* known = c.draft.find<Session>(command.session);
  if (!known || known->role != Role::kWorker)
    return refuse(Reason::kUnknownSession, "no worker session " + to_text(command.session));
  if (known->boot_id != command.boot_id)
    return refuse(Reason::kSessionFenced, "session " + to_text(command.session) +
                                              " belongs to another boot of node " + known->node);
  Session worker = *known;
  ++worker.incarnation;
  ReattachBegun begun{
      worker.incarnation,
      {},
      command.store_id_seen.valid() && command.store_id_seen != c.draft.meta().store_id};
  for (const SessionId id : c.draft.clients_of(worker.id)) {
    const Session* client = c.draft.find<Session>(id);
    if (client->ending) continue;
    for (const std::string& life_name : client->life_names)
      begun.clients.push_back({id, client->name, life_name});
  }
  const Presence* presence = c.draft.find<Presence>(worker.id);
  c.draft.put(Presence{.session = worker.id,
                       .attachment = Attachment::kReattaching,
                       .leases_stated = presence && presence->leases_stated});
  c.draft.emit(
      {.kind = EventKind::kReattachStarted, .session = worker.id, .count = worker.incarnation});
  c.draft.put(std::move(worker));
  c.draft.require_sync();
  rise_above(c, command.epoch_seen, command.store_id_seen);
  return begun;
}

namespace {

struct Judging {
  const Context& c;
  const Pool& pool;
  const Namespace* ns;  // nullptr: no such fingerprint here

  LedgerVerdict verdict_on(const LedgerRow& row) const {
    const Replica* replica = c.draft.find<Replica>(row.replica);
    if (row.state == LedgerState::kReclaimed) return reclaimed(replica);
    if (!replica) return unknown(row);
    if (!agrees(*replica, row)) return quarantine(*replica);
    switch (replica->state) {
      case ReplicaState::kReady:
        return LedgerVerdict::kKeep;
      case ReplicaState::kReserved:
        return reserved(*replica, row);
      case ReplicaState::kRetiring:
        return may_be_reclaimed(row.replica) ? LedgerVerdict::kReclaim : LedgerVerdict::kKeep;
      case ReplicaState::kQuarantined:
        return replica->in_reservation ? reserved(*replica, row) : LedgerVerdict::kQuarantine;
    }
    return LedgerVerdict::kQuarantine;
  }

 private:
  bool may_be_reclaimed(ReplicaId id) const {
    return c.draft.lease_count(id) == 0 && knows_readers(c, pool);
  }

  ObjectKey key_of(const LedgerRow& row) const {
    return berth::key_of(*ns, row.digest, row.shard, row.part);
  }

  // The same object, at the same place, in states that can belong together.
  bool agrees(const Replica& replica, const LedgerRow& row) const {
    if (!ns || replica.key != key_of(row) || replica.pool != pool.id ||
        replica.size_bytes != row.size_bytes)
      return false;
    if (replica.state != ReplicaState::kReady) return true;
    return replica.offset == row.offset && row.state != LedgerState::kWriting &&
           row.state != LedgerState::kQuarantined;
  }

  // The owner reclaimed it and its ACK may not have landed; or a power cut took our RETIRING. The
  // memory is free either way.
  LedgerVerdict reclaimed(const Replica* replica) const {
    if (replica && replica->pool == pool.id) drop(c, {replica->id});
    return LedgerVerdict::kFree;
  }

  LedgerVerdict quarantine(const Replica& replica) const {
    const ReplicaId id = replica.id;
    if (const Reservation* reservation = replica.in_reservation ? reservation_of(c, id) : nullptr)
      close_items(c, *reservation, {id});
    c.draft.emit({.kind = EventKind::kQuarantined,
                  .pool = replica.pool,
                  .replica = id,
                  .count = 1,
                  .reason = std::string(name_of(Why::kLedgerMismatch))});
    move_to(c, replica, ReplicaState::kQuarantined, Why::kLedgerMismatch);
    return LedgerVerdict::kQuarantine;
  }

  LedgerVerdict reserved(const Replica& replica, const LedgerRow& row) const {
    if (row.state != LedgerState::kSealed) return LedgerVerdict::kKeep;
    // Its commit was acknowledged and a power cut took it: the bytes are complete.
    if (const Reservation* reservation = reservation_of(c, replica.id))
      close_items(c, *reservation, {replica.id});
    Replica ready = replica;
    ready.offset = row.offset;
    return adopt(ready);
  }

  LedgerVerdict unknown(const LedgerRow& row) const {
    // Its commit may have landed in the run that a power cut took, and an engine of another worker
    // may have taken a lease since: it goes by a reclaim, once that worker has stated its leases.
    const bool may_be_read = row.state == LedgerState::kWritten && !pool.exports.empty() &&
                             !may_be_reclaimed(row.replica);
    if ((row.state != LedgerState::kSealed && !may_be_read) || !ns || !fits(row))
      return LedgerVerdict::kFree;
    Replica replica;
    replica.id = row.replica;
    replica.key = key_of(row);
    replica.pool = pool.id;
    replica.offset = row.offset;
    replica.size_bytes = row.size_bytes;
    if (!may_be_read) return adopt(replica);
    move_to(c, replica, ReplicaState::kRetiring, Why::kLedgerMismatch);
    c.draft.emit({.kind = EventKind::kRetiring,
                  .pool = pool.id,
                  .replica = replica.id,
                  .count = 1,
                  .reason = std::string(name_of(Why::kLedgerMismatch))});
    return LedgerVerdict::kQuarantine;
  }

  bool fits(const LedgerRow& row) const {
    return row.size_bytes > 0 && row.shard < ns->spec.shards && row.part < ns->spec.parts &&
           row.offset % pool.spec.page_bytes == 0 && row.offset <= pool.spec.capacity_bytes &&
           pool.pages_bytes(row.size_bytes) <= pool.spec.capacity_bytes - row.offset;
  }

  // READY again; charged past a quota it retires at once, as does a second copy in the same pool.
  LedgerVerdict adopt(Replica replica) const {
    bool is_copy = false;
    c.draft.each_replica(replica.key, [&](const Replica& other) {
      is_copy |=
          other.id != replica.id && other.pool == pool.id && other.state == ReplicaState::kReady;
      return !is_copy;
    });
    const auto allocated = static_cast<uint64_t>(c.draft.pool_usage(pool.id).allocated_bytes());
    const auto in_namespace =
        static_cast<uint64_t>(c.draft.namespace_usage(ns->id).allocated_bytes);
    const bool over = allocated > pool.spec.budget_bytes ||
                      (ns->quota_bytes > 0 && in_namespace > ns->quota_bytes);
    c.draft.emit({.kind = EventKind::kAdopted, .pool = pool.id, .replica = replica.id, .count = 1});
    move_to(c, replica, ReplicaState::kReady, Why::kNone);
    const Why leaves = is_copy || over ? Why::kOverQuota : leaves_at_once(pool, *ns, replica);
    if (leaves == Why::kNone) return LedgerVerdict::kAdopted;
    move_to(c, replica, ReplicaState::kRetiring, leaves);
    return may_be_reclaimed(replica.id) ? LedgerVerdict::kReclaim : LedgerVerdict::kAdopted;
  }
};

// A power cut may have taken a lease whose reader is alive: it is made again as its worker holds
// it.
void keep_lease(const Context& c, SessionId worker, const HeldLease& held) {
  const Session* client = c.draft.find<Session>(held.client);
  if (!client || client->worker != worker || client->ending)
    return;  // its spans are over; the worker is told
  const Lease* known = c.draft.find<Lease>(held.lease);
  if (known && known->session != held.client) return;
  if (!known) {
    Lease lease{held.lease,
                held.client,
                held.operation,
                c.now,
                c.config.lease_ttl_default,
                c.now + c.config.lease_ttl_default,
                false,
                {}};
    // Also those that are not known (yet): the owner of an imported pool may re-attach later.
    lease.replicas = held.replicas;
    c.draft.put(std::move(lease));
  }
  c.draft.put(SeenLease{held.lease, c.draft.find<Session>(worker)->incarnation});
}

Result<const Session*> require_reattaching(const Context& c, const Caller& caller) {
  Result<const Session*> worker = require_worker(c, caller);
  if (!worker) return worker;
  const Presence* presence = c.draft.find<Presence>(caller.session);
  if (!presence || presence->attachment != Attachment::kReattaching)
    return refuse(Reason::kReattaching, "no re-attach of session " + to_text(caller.session) +
                                            " is under way; begin again");
  return worker;
}

std::vector<LedgerVerdict> judge(const Context& c, const ReconcileChunk& command,
                                 const Pool& pool) {
  const Namespace* ns = c.draft.base().namespace_by_fingerprint(command.namespace_fingerprint);
  const Judging judging{c, pool, ns};
  std::vector<LedgerVerdict> verdicts;
  for (const LedgerRow& row : command.rows) {
    verdicts.push_back(judging.verdict_on(row));
    if (c.draft.find<Replica>(row.replica))
      c.draft.put(SeenReplica{row.replica, command.caller.incarnation});
  }
  return verdicts;
}

}  // namespace

Result<Outcome> handle(const Context& c, const ReconcileChunk& command) {
  const Result<const Session*> worker = require_reattaching(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  if (command.rows.size() > c.config.batch_items_max)
    return refuse(Reason::kInvalidArgument,
                  "replicas holds " + std::to_string(command.rows.size()) +
                      " items; a chunk holds at most " + std::to_string(c.config.batch_items_max));
  ChunkReconciled answer;
  const Pool* pool = c.draft.find<Pool>(command.pool);
  if (command.foreign_store || !pool)  // nothing of it means anything here
    answer.verdicts.assign(command.rows.size(), LedgerVerdict::kFree);
  else if (pool->owner != command.caller.session)
    return refuse(Reason::kPermissionDenied,
                  "pool " + to_text(command.pool) + " does not belong to this session");
  else
    answer.verdicts = judge(c, command, *pool);
  if (command.foreign_store) return answer;
  // A chunk of leases alone names no pool.
  for (const HeldLease& held : command.leases) keep_lease(c, command.caller.session, held);
  return answer;
}

namespace {

// Walks the pools from the cursor on and drops what the ledger did not name. False: the slice is
// used up.
bool drop_missing(const Context& c, Presence& presence, Incarnation incarnation) {
  const ReplicaTable& table = c.draft.base().replicas();
  // Looking costs less than changing, so a slice looks at more than it may drop.
  uint32_t looks = c.config.slice_records * 16;
  std::vector<ReplicaId> missing;
  bool finished = true;
  for (const PoolId id : c.draft.pools_of(presence.session)) {
    if (presence.cursor_pool.valid() && id < presence.cursor_pool) continue;
    const PoolEntry* entry = c.draft.base().find_pool(id);
    if (!entry) continue;  // registered in this very batch: empty
    uint32_t slot = entry->head;
    if (id == presence.cursor_pool && presence.cursor_replica.valid()) {
      const uint32_t at = table.slot_of(presence.cursor_replica);
      if (at != ReplicaTable::kNone)
        slot = at;  // else it was freed since: look through the pool again
    }
    for (; slot != ReplicaTable::kNone; slot = table.at(slot).pool_next) {
      const ReplicaId replica = table.at(slot).replica.id;
      if (looks-- == 0 || missing.size() >= c.config.slice_records) {
        presence.cursor_pool = id;
        presence.cursor_replica = replica;
        finished = false;
        break;
      }
      if (c.draft.find<Replica>(replica) && c.draft.seen(replica) != incarnation)
        missing.push_back(replica);
    }
    if (!finished) break;
  }
  if (!missing.empty()) {
    c.draft.emit({.kind = EventKind::kDropped,
                  .session = presence.session,
                  .replica = missing.front(),
                  .count = missing.size(),
                  .reason = "not in the owner's ledger"});
    drop(c, missing);
    presence.dropped += missing.size();
  }
  return finished;
}

// Leases that no span is out under: their worker answered a release, or never learned of them. Of a
// client that joined more than once the worker may know less than the engine, which reads other
// workers' pools under leases from before: these wait until they are over age and it is asked.
bool end_unheld_leases(const Context& c, SessionId worker, Incarnation incarnation) {
  uint32_t ended = 0;
  for (const SessionId client : c.draft.clients_of(worker)) {
    if (c.draft.find<Session>(client)->life_names.size() > 1) continue;
    const auto& index = c.draft.base().leases_by_session();
    for (auto it = index.lower_bound({client, LeaseId()}); it != index.end() && it->first == client;
         ++it) {
      const Lease* lease = c.draft.find<Lease>(it->second);
      const SeenLease* seen = c.draft.find<SeenLease>(it->second);
      if (!lease || (seen && seen->incarnation == incarnation)) continue;
      if (ended++ == c.config.slice_records) return false;
      end_lease(c, *lease, "not held by its worker");
    }
  }
  return true;
}

}  // namespace

Result<Outcome> handle(const Context& c, const EndReattach& command) {
  const Result<const Session*> worker = require_reattaching(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  Presence presence = *c.draft.find<Presence>(command.caller.session);
  const Incarnation incarnation = command.caller.incarnation;
  if (presence.cursor_pool == kEveryPoolSearched)
    return ReattachEnded{false, presence.dropped};  // a repeat
  const bool finished = drop_missing(c, presence, incarnation) &&
                        end_unheld_leases(c, command.caller.session, incarnation);
  if (finished) {
    presence.cursor_pool = kEveryPoolSearched;
    presence.leases_stated = true;
    presence.unknown_clients.clear();
    for (const SessionId client : command.clients) {
      const Session* known = c.draft.find<Session>(client);
      if (!known || known->ending || known->worker != command.caller.session)
        presence.unknown_clients.push_back(client);
    }
    c.draft.emit({.kind = EventKind::kReattachDone,
                  .session = command.caller.session,
                  .count = presence.dropped});
  }
  const uint64_t dropped = presence.dropped;
  c.draft.put(std::move(presence));
  return ReattachEnded{!finished, dropped};
}

}  // namespace berth
