#include "server/directory/context.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/check.h"
#include "common/text.h"

namespace berth {

// ---- Who is speaking
// -------------------------------------------------------------------------------------------

Result<const Session*> require_worker(const Context& c, const Caller& caller) {
  const Session* worker = c.draft.find<Session>(caller.session);
  if (!worker || worker->role != Role::kWorker)
    return refuse(Reason::kUnknownSession, "no worker session " + to_text(caller.session));
  if (worker->incarnation != caller.incarnation)
    return refuse(Reason::kStaleIncarnation,
                  "session " + to_text(caller.session) + " is at incarnation " +
                      std::to_string(worker->incarnation) + ", the call at " +
                      std::to_string(caller.incarnation));
  return worker;
}

Result<const Session*> require_present_worker(const Context& c, const Caller& caller) {
  Result<const Session*> worker = require_worker(c, caller);
  if (!worker) return worker;
  const Presence* presence = c.draft.find<Presence>(caller.session);
  if (!presence || presence->attachment != Attachment::kAttached)
    return refuse(Reason::kReattaching, "session " + to_text(caller.session) + " has no Link");
  return worker;
}

Result<const Session*> require_client(const Context& c, const Caller& caller, SessionId client) {
  if (Result<const Session*> worker = require_present_worker(c, caller); !worker) return worker;
  const Session* session = c.draft.find<Session>(client);
  if (!session || session->role != Role::kClient)
    return refuse(Reason::kUnknownSession, "no client session " + to_text(client));
  if (session->worker != caller.session)
    return refuse(Reason::kPermissionDenied, "client session " + to_text(client) +
                                                 " is not attached through session " +
                                                 to_text(caller.session));
  if (session->ending)
    return refuse(Reason::kSessionFenced, "client session " + to_text(client) + " has ended");
  return session;
}

// ---- Bounds
// ---------------------------------------------------------------------------------------------------

Result<> check_count(const Context& c, const char* field, size_t count) {
  if (count > c.config.batch_items_max)
    return refuse(Reason::kInvalidArgument, std::string(field) + " holds " + std::to_string(count) +
                                                " items; limits.batch_items_max is " +
                                                std::to_string(c.config.batch_items_max));
  return {};
}

// ---- Numbered operations
// ---------------------------------------------------------------------------------------

Result<const Operation*> find_operation(const Context& c, const Numbered& id, OperationKind kind) {
  if (id.operation == 0)
    return refuse(Reason::kInvalidArgument, "operation = 0: operations are numbered from 1");
  if (const Operation* known = c.draft.find<Operation>({id.client, id.operation})) {
    if (known->kind == kind && known->content_hash == id.content_hash) return known;
    return refuse(Reason::kOperationMismatch, "operation " + std::to_string(id.operation) +
                                                  " of session " + to_text(id.client) +
                                                  " was used with other content");
  }
  const Session* client = c.draft.find<Session>(id.client);
  if (id.operation <= client->operation_low_water)
    return refuse(Reason::kUnknownOperation, "operation " + std::to_string(id.operation) +
                                                 " is not above the low-water mark " +
                                                 std::to_string(client->operation_low_water) +
                                                 " of session " + to_text(id.client));
  // A commit answers a reservation that was granted, so it always finds room: a full window can
  // drain.
  const int64_t room = int64_t{c.config.operations_max} * (kind == OperationKind::kCommit ? 2 : 1);
  if (c.draft.session_usage(id.client).operations >= room)
    return refuse(Reason::kOperationWindowFull,
                  "session " + to_text(id.client) + " has " +
                      std::to_string(c.draft.session_usage(id.client).operations) +
                      " operations above its low-water mark; limits.operations_max is " +
                      std::to_string(c.config.operations_max));
  return nullptr;
}

Operation new_operation(const Numbered& id, OperationKind kind) {
  Operation operation;
  operation.session = id.client;
  operation.number = id.operation;
  operation.kind = kind;
  operation.content_hash = id.content_hash;
  return operation;
}

// ---- Replicas
// ----------------------------------------------------------------------------------------------------

Replica moved(const Context& c, Replica replica, ReplicaState state, Why why) {
  replica.state = state;
  replica.why = why;
  replica.in_reservation = false;
  if (state != ReplicaState::kReady && c.draft.find<Pin>(replica.id))
    c.draft.forget<Pin>(replica.id);
  return replica;
}

void move_to(const Context& c, const Replica& replica, ReplicaState state, Why why) {
  c.draft.put(moved(c, replica, state, why));
}

bool can_retire(const Replica& replica) {
  return replica.state == ReplicaState::kReady ||
         (replica.state == ReplicaState::kQuarantined && replica.why == Why::kLedgerMismatch);
}

void retire(const Context& c, const Replica& replica, Why why) {
  const ReplicaId id = replica.id;
  c.draft.emit({.kind = EventKind::kRetiring,
                .pool = replica.pool,
                .replica = id,
                .count = 1,
                .reason = std::string(name_of(why))});
  move_to(c, replica, ReplicaState::kRetiring, why);
  if (c.draft.lease_count(id) == 0) ask_reclaim(c, {id});
}

void retire_all(const Context& c, const std::vector<ReplicaId>& replicas, Why why) {
  if (replicas.empty()) return;
  std::vector<uint32_t> found(replicas.size());
  c.draft.base_replicas().slots_of(replicas, found);
  std::vector<std::pair<ReplicaId, uint32_t>> installed;
  std::vector<ReplicaId> unprotected;
  for (size_t i = 0; i < found.size(); ++i) {
    const ReplicaId id = replicas[i];
    const uint32_t slot = found[i];
    if (c.draft.lease_count(id, slot) == 0) unprotected.push_back(id);
    if (slot == ReplicaTable::kNone)
      move_to(c, *c.draft.find<Replica>(id), ReplicaState::kRetiring, why);
    else
      installed.emplace_back(id, slot);
  }
  std::sort(installed.begin(), installed.end());
  installed.erase(std::unique(installed.begin(), installed.end()), installed.end());
  std::vector<Replica> retiring;
  std::vector<uint32_t> slots;
  for (const auto& [id, slot] : installed) {
    retiring.push_back(moved(c, *c.draft.find_replica(id, slot), ReplicaState::kRetiring, why));
    slots.push_back(slot);
  }
  c.draft.put_together(std::move(retiring), std::move(slots));
  c.draft.emit({.kind = EventKind::kRetiring,
                .pool = c.draft.find<Replica>(replicas.front())->pool,
                .replica = replicas.front(),
                .count = replicas.size(),
                .reason = std::string(name_of(why))});
  ask_reclaim(c, unprotected);
}

Why leaves_at_once(const Pool& pool, const Namespace& ns, const Replica& replica) {
  if (pool.state == PoolState::kDraining) return Why::kPoolDraining;
  if (pool.state != PoolState::kOpen) return Why::kPoolClosing;
  return replica.id < ns.evicted_below ? Why::kNamespaceEvicted : Why::kNone;
}

bool is_pinned(const Context& c, ReplicaId replica) {
  const Pin* pin = c.draft.find<Pin>(replica);
  return pin && pin->holds_at(c.now);
}

void ask_reclaim(const Context& c, const std::vector<ReplicaId>& replicas) {
  std::map<SessionId, std::vector<ReplicaId>> by_owner;
  PoolId pool_id;
  std::vector<ReplicaId>* asked = nullptr;  // those of that pool; none: it is not asked for
  for (const ReplicaId id : replicas) {
    const Replica* replica = c.draft.find<Replica>(id);
    if (!replica) continue;
    if (replica->pool != pool_id) {
      pool_id = replica->pool;
      const Pool* pool = c.draft.find<Pool>(pool_id);
      const bool may_be = pool && pool->owner.valid() && knows_readers(c, *pool);
      asked = may_be ? &by_owner[pool->owner] : nullptr;
    }
    if (asked) asked->push_back(id);
  }
  for (auto& [owner, ids] : by_owner)
    c.draft.ask({.worker = owner, .kind = Ask::Kind::kReclaim, .replicas = std::move(ids)});
}

namespace {

// Granted items of a stored Reserve answer become DROPPED, so that a repeat of the operation tells
// it. `dropped` is sorted.
void rewrite_answer(const Context& c, const Reservation& reservation,
                    const std::vector<ReplicaId>& dropped) {
  const Operation* stored = c.draft.find<Operation>({reservation.session, reservation.operation});
  if (!stored) return;  // below the low-water mark: nobody will ask again
  Operation rewritten = *stored;
  uint64_t next = reservation.first.value();
  for (uint8_t& code : rewritten.codes) {
    if (code != static_cast<uint8_t>(StoreCode::kGranted) &&
        code != static_cast<uint8_t>(StoreCode::kSkippedDropped))
      continue;
    if (std::binary_search(dropped.begin(), dropped.end(), ReplicaId(next++)))
      code = static_cast<uint8_t>(StoreCode::kSkippedDropped);
  }
  c.draft.put(std::move(rewritten));
}

}  // namespace

void drop(const Context& c, const std::vector<ReplicaId>& replicas) {
  std::map<ReplicaId, std::vector<ReplicaId>> by_reservation;
  for (const ReplicaId id : replicas) {
    const Replica* replica = c.draft.find<Replica>(id);
    if (replica && replica->in_reservation)
      if (const Reservation* reservation = reservation_of(c, id))
        by_reservation[reservation->first].push_back(id);
  }
  for (auto& [first, ids] : by_reservation) {
    std::sort(ids.begin(), ids.end());
    const Reservation* reservation = c.draft.find<Reservation>(first);
    rewrite_answer(c, *reservation, ids);
    close_items(c, *reservation, ids);
  }
  c.draft.forget_together(replicas);
}

// ---- Reservations
// --------------------------------------------------------------------------------------------------

const Reservation* reservation_of(const Context& c, ReplicaId replica) {
  // Ranges do not overlap, so the one that starts last at or before the id is the only candidate;
  // of those staged in this batch there are few.
  const Reservation* found = nullptr;
  const auto& installed = c.draft.base().reservations();
  if (auto it = installed.upper_bound(replica); it != installed.begin()) {
    const Reservation* newest = c.draft.find<Reservation>(std::prev(it)->first);
    if (newest && newest->covers(replica)) found = newest;
  }
  if (!found)
    c.draft.each_staged<Reservation>([&](const Reservation& r) {
      if (r.covers(replica)) found = &r;
    });
  return found;
}

void close_items(const Context& c, const Reservation& reservation,
                 const std::vector<ReplicaId>& replicas) {
  std::vector<ReplicaId> closed = replicas;
  std::sort(closed.begin(), closed.end());
  closed.erase(std::unique(closed.begin(), closed.end()), closed.end());
  // All of it, most of the time; then its items need not be copied.
  if (closed.size() == reservation.items.size())
    return c.draft.forget<Reservation>(reservation.first);
  Reservation left = reservation;
  std::erase_if(left.items, [&](const ReservedItem& item) {
    return std::binary_search(closed.begin(), closed.end(), left.replica_of(item));
  });
  c.draft.put(std::move(left));
}

// ---- Leases
// ----------------------------------------------------------------------------------------------------------

void end_lease(const Context& c, const Lease& lease, std::string reason) {
  const std::vector<ReplicaId>& replicas = lease.replicas;  // forgetting it leaves it where it is
  c.draft.emit({.kind = EventKind::kLeaseEnded,
                .session = lease.session,
                .count = replicas.size(),
                .lease = lease.id,
                .reason = std::move(reason)});
  c.draft.forget<Lease>(lease.id);
  std::vector<uint32_t> slots(replicas.size());
  c.draft.base_replicas().slots_of(replicas, slots);
  std::vector<ReplicaId> unprotected;
  for (size_t i = 0; i < slots.size(); ++i) {
    const Replica* replica = c.draft.find_replica(replicas[i], slots[i]);
    if (replica && replica->state == ReplicaState::kRetiring &&
        c.draft.lease_count(replicas[i], slots[i]) == 0)
      unprotected.push_back(replicas[i]);
  }
  if (!unprotected.empty()) ask_reclaim(c, unprotected);
}

}  // namespace berth
