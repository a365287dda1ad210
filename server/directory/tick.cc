// What time does: it hides and it asks. It never frees.
#include <map>
#include <optional>

#include "server/directory/context.h"

namespace berth {
namespace {

void hide_silent_workers(const Context& c) {
  for (const auto& [id, installed] : c.draft.base().presence()) {
    const Presence* presence = c.draft.find<Presence>(id);
    if (!presence || presence->attachment != Attachment::kAttached || presence->silent) continue;
    if (presence->heartbeat + c.config.heartbeat_deadline > c.now) continue;
    Presence silent = *presence;
    silent.silent = true;
    c.draft.put(std::move(silent));
    c.draft.emit({.kind = EventKind::kSessionSilent, .session = id});
  }
}

// Whether the holder can be asked at all. While its worker is away it could not have answered, so
// its deadline starts anew.
SessionId worker_to_ask(const Context& c, SessionId client) {
  const Session* session = c.draft.find<Session>(client);
  return session && !session->ending && c.draft.is_present(session->worker) ? session->worker
                                                                            : SessionId();
}

void ask_to_cancel(const Context& c, SessionId worker, const Reservation& reservation) {
  Ask ask{.worker = worker,
          .kind = Ask::Kind::kCancel,
          .client = reservation.session,
          .operation = reservation.operation};
  for (const ReservedItem& item : reservation.items)
    ask.replicas.push_back(reservation.replica_of(item));
  c.draft.ask(std::move(ask));
}

void ask_to_release(const Context& c, SessionId worker, const Lease& lease) {
  c.draft.ask({.worker = worker,
               .kind = Ask::Kind::kRevoke,
               .client = lease.session,
               .operation = lease.operation,
               .lease = lease.id});
}

// An overdue write: hidden at once, charged until its writer answers or is proven dead.
void quarantine(const Context& c, SessionId worker, Reservation reservation) {
  reservation.quarantined = true;
  for (const ReservedItem& item : reservation.items) {
    Replica replica = *c.draft.find<Replica>(reservation.replica_of(item));
    replica.state = ReplicaState::kQuarantined;
    replica.why = Why::kWriteOverdue;
    c.draft.put(std::move(replica));
  }
  ask_to_cancel(c, worker, reservation);
  c.draft.emit({.kind = EventKind::kWriteOverdue,
                .session = reservation.session,
                .replica = reservation.first,
                .count = reservation.items.size()});
  c.draft.put(std::move(reservation));
}

bool judge_reservations(const Context& c, uint32_t& left) {
  for (const auto& [deadline, first] : c.draft.base().reservation_deadlines()) {
    if (deadline > c.now) return true;
    const Reservation* due = c.draft.find<Reservation>(first);
    if (!due || due->quarantined || due->deadline > c.now) continue;
    if (left < due->items.size() + 1 && left < c.config.slice_records) return false;
    left -= std::min<uint32_t>(left, static_cast<uint32_t>(due->items.size() + 1));
    if (const SessionId worker = worker_to_ask(c, due->session); worker.valid()) {
      quarantine(c, worker, *due);
    } else {
      Reservation armed = *due;
      armed.deadline = c.now + armed.write_within;
      c.draft.put(std::move(armed));
    }
  }
  return true;
}

bool judge_leases(const Context& c, uint32_t& left) {
  for (const auto& [expires, id] : c.draft.base().lease_deadlines()) {
    if (expires > c.now) return true;
    const Lease* due = c.draft.find<Lease>(id);
    if (!due || due->revoking || due->expires > c.now) continue;
    if (left == 0) return false;
    --left;
    Lease lease = *due;
    if (const SessionId worker = worker_to_ask(c, lease.session); worker.valid()) {
      lease.revoking = true;
      ask_to_release(c, worker, lease);
      c.draft.emit({.kind = EventKind::kLeaseRevoking,
                    .session = lease.session,
                    .count = lease.replicas.size(),
                    .lease = id});
    } else {
      lease.expires = c.now + lease.ttl;
    }
    c.draft.put(std::move(lease));
  }
  return true;
}

// Unanswered asks are repeated: the worker may have been away when they were made.
void ask_holders_again(const Context& c, SessionId worker) {
  const Directory& directory = c.draft.base();
  for (const SessionId client : c.draft.clients_of(worker)) {
    const auto& reservations = directory.reservations_by_session();
    for (auto it = reservations.lower_bound({client, ReplicaId()});
         it != reservations.end() && it->first == client; ++it)
      if (const Reservation* r = c.draft.find<Reservation>(it->second); r && r->quarantined)
        ask_to_cancel(c, worker, *r);
    const auto& leases = directory.leases_by_session();
    for (auto it = leases.lower_bound({client, LeaseId()});
         it != leases.end() && it->first == client; ++it)
      if (const Lease* lease = c.draft.find<Lease>(it->second); lease && lease->revoking)
        ask_to_release(c, worker, *lease);
  }
}

// A slice of a round over everything that the worker has not acknowledged yet. A round is whole:
// what was retired between the worker's re-attach and its Link may be a million replicas, and
// nobody has asked for them. False: it goes on in the next slice.
bool ask_reclaims_again(const Context& c, Presence& round) {
  std::vector<ReplicaId> reclaimable;
  uint32_t looks = c.config.slice_records;
  for (const PoolId id : c.draft.pools_of(round.session)) {
    const PoolEntry* entry = c.draft.base().find_pool(id);
    if (!entry || id < round.asked_pool) continue;
    if (id != round.asked_pool) round.asked_replica = ReplicaId();
    round.asked_pool = id;
    for (auto it = entry->retiring.upper_bound(round.asked_replica); it != entry->retiring.end();
         ++it) {
      if (looks-- == 0) {
        ask_reclaim(c, reclaimable);
        return false;
      }
      round.asked_replica = *it;
      const Replica* now = c.draft.find<Replica>(*it);
      if (now && now->state == ReplicaState::kRetiring && c.draft.lease_count(*it) == 0)
        reclaimable.push_back(*it);
    }
  }
  ask_reclaim(c, reclaimable);
  return true;
}

// Imported pools that are out of use, by who imports them.
std::multimap<SessionId, PoolId> imports_to_drop(const Context& c) {
  std::multimap<SessionId, PoolId> found;
  for (const auto& [id, entry] : c.draft.base().pools()) {
    if (entry.pool.state == PoolState::kOpen) continue;
    for (const PoolExport& e : entry.pool.exports)
      if (e.importer.valid()) found.emplace(e.importer, id);
  }
  return found;
}

// False: a round goes on in the next slice.
bool repeat_asks(const Context& c) {
  std::optional<std::multimap<SessionId, PoolId>> to_drop;  // once, and only if anybody is due
  for (const auto& [id, installed] : c.draft.base().presence()) {
    if (!c.draft.is_present(id)) continue;
    const Presence* presence = c.draft.find<Presence>(id);
    if (!presence->is_asking && presence->asked + c.config.reclaim_again > c.now) continue;
    Presence round = *presence;
    if (!round.is_asking) {
      round.is_asking = true;
      round.asked = c.now;
      round.asked_pool = PoolId();
      round.asked_replica = ReplicaId();
      ask_holders_again(c, id);
      if (!to_drop) to_drop = imports_to_drop(c);
      for (auto [it, end] = to_drop->equal_range(id); it != end; ++it)
        c.draft.ask({.worker = id, .kind = Ask::Kind::kDropImport, .pool = it->second});
    }
    const bool is_over = ask_reclaims_again(c, round);
    round.is_asking = !is_over;
    c.draft.put(std::move(round));
    if (!is_over) return false;
  }
  return true;
}

// A pin that is over protects nothing already; here its record goes.
bool forget_pins(const Context& c, uint32_t& left) {
  for (const auto& [expires, id] : c.draft.base().pin_deadlines()) {
    if (expires > c.now) return true;
    const Pin* pin = c.draft.find<Pin>(id);
    if (!pin || pin->kind != PinKind::kSoft || pin->expires > c.now) continue;
    if (left == 0) return false;
    --left;
    c.draft.forget<Pin>(id);
  }
  return true;
}

}  // namespace

Result<Outcome> handle(const Context& c, const Tick&) {
  hide_silent_workers(c);
  // First, so that what is asked for below is not asked for twice.
  const bool is_round_over = repeat_asks(c);
  uint32_t left = c.config.slice_records;
  const bool all = judge_reservations(c, left) && judge_leases(c, left) && forget_pins(c, left);
  return Ticked{!all || !is_round_over};
}

}  // namespace berth
