#include "server/directory/invariants.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/text.h"

namespace berth {
namespace {

// Everything that follows from the records, added up again from nothing.
struct Recount {
  std::map<PoolId, PoolUsage> pools;
  std::map<NamespaceId, NamespaceUsage> namespaces;
  std::map<SessionId, SessionUsage> sessions;
  std::map<ReplicaId, uint32_t> leases;
  std::map<PoolId, std::set<ReplicaId>> retiring;
  std::map<PoolId, int64_t> leased;
  std::set<ReplicaId> reserved;
  std::map<ReplicaId, uint32_t> unknown_leased;  // leases of replicas that are not known
};

std::string check_reservations(const Directory& d, Recount& recount) {
  ReplicaId end_of_previous;
  for (const auto& [first, r] : d.reservations()) {
    ++recount.sessions[r.session].reservations;
    if (r.items.empty()) return "reservation " + to_text(first) + " has no open item left";
    if (first < end_of_previous)
      return "reservation " + to_text(first) + " overlaps the one before it";
    end_of_previous = ReplicaId(first.value() + r.granted);
    if (!d.find<Session>(r.session))
      return "reservation " + to_text(first) + " belongs to no session";
    for (const ReservedItem& item : r.items) {
      const Replica* replica = d.find<Replica>(r.replica_of(item));
      const ReplicaState want =
          r.quarantined ? ReplicaState::kQuarantined : ReplicaState::kReserved;
      if (!replica || !replica->in_reservation || replica->state != want ||
          replica->key != item.key || replica->pool != item.pool)
        return "reservation " + to_text(first) + " and replica " + to_text(r.replica_of(item)) +
               " differ";
      recount.reserved.insert(replica->id);
    }
    const bool is_armed = d.reservation_deadlines().contains({r.deadline, first});
    if (is_armed == r.quarantined)
      return "the deadline index and reservation " + to_text(first) + " differ";
    if (!d.reservations_by_session().contains({r.session, first}))
      return "the session index lacks reservation " + to_text(first);
  }
  return "";
}

std::string check_leases(const Directory& d, Recount& recount) {
  for (const auto& [id, lease] : d.leases()) {
    ++recount.sessions[lease.session].leases;
    if (!d.find<Session>(lease.session)) return "lease " + to_text(id) + " belongs to no session";
    if (!d.leases_by_session().contains({lease.session, id}))
      return "the session index lacks lease " + to_text(id);
    if (d.lease_deadlines().contains({lease.expires, id}) == lease.revoking)
      return "the deadline index and lease " + to_text(id) + " differ";
    for (const ReplicaId replica_id : lease.replicas) {
      const Replica* replica = d.find<Replica>(replica_id);
      if (!replica) {
        ++recount.unknown_leased[replica_id];
        continue;
      }
      ++recount.leases[replica_id];
      // RESERVED: a power cut took the commit, and another worker's engine says that it reads it.
      const bool was_readable =
          replica->state == ReplicaState::kReady || replica->state == ReplicaState::kRetiring ||
          replica->why == Why::kLedgerMismatch || !d.find<Pool>(replica->pool)->exports.empty();
      if (!was_readable)
        return "lease " + to_text(id) + " protects replica " + to_text(replica_id) +
               ", which was never readable";
    }
  }
  for (const auto& [id, count] : recount.unknown_leased)
    if (d.lease_count(id) != count)
      return "replica " + to_text(id) + ", which is not known, counts " +
             std::to_string(d.lease_count(id)) + " leases, " + std::to_string(count) + " name it";
  if (d.unknown_leased_count() != recount.unknown_leased.size())
    return "a lease is counted of a replica that is not known and that no lease names";
  return "";
}

std::string check_replica(const Directory& d, const ReplicaSlot& slot, Recount& recount) {
  const Replica& r = slot.replica;
  const PoolEntry* entry = d.find_pool(r.pool);
  if (!entry) return "replica " + to_text(r.id) + " lies in an unknown pool";
  if (!d.find<Namespace>(r.key.namespace_id()))
    return "replica " + to_text(r.id) + " belongs to an unknown namespace";
  if (r.in_reservation != recount.reserved.contains(r.id))
    return "replica " + to_text(r.id) + " and the reservations differ";
  if (r.state == ReplicaState::kReserved && !r.in_reservation)
    return "replica " + to_text(r.id) + " is reserved by nobody";
  if (r.state == ReplicaState::kReady &&
      (r.offset % entry->pool.spec.page_bytes != 0 ||
       r.offset + entry->pool.pages_bytes(r.size_bytes) > entry->pool.spec.capacity_bytes))
    return "replica " + to_text(r.id) + " does not lie inside its pool";
  recount.pools[r.pool] += usage_of(r, entry->pool, +1);
  recount.namespaces[r.key.namespace_id()] += namespace_usage_of(r, entry->pool, +1);
  if (r.state == ReplicaState::kRetiring) recount.retiring[r.pool].insert(r.id);
  const auto leases = recount.leases.find(r.id);
  const uint32_t lease_count = leases == recount.leases.end() ? 0 : leases->second;
  if (slot.lease_count != lease_count)
    return "replica " + to_text(r.id) + " counts " + std::to_string(slot.lease_count) +
           " leases, " + std::to_string(lease_count) + " name it";
  if (lease_count > 0) ++recount.leased[r.pool];
  bool found = false;
  for (uint32_t s = d.replicas().first_slot_of(r.key); s != ReplicaTable::kNone && !found;
       s = d.replicas().at(s).next_same_key)
    found = d.replicas().at(s).replica.id == r.id;
  return found ? "" : "the key index lacks replica " + to_text(r.id);
}

// Whether the owner has named all that it holds. Before that the directory may know of what is
// gone: a power cut takes the word that pages were freed, and their next content is adopted before
// the old one is judged missing. All of it is hidden until then.
bool is_verified(const Directory& d, PoolId id) {
  const Pool* pool = d.find<Pool>(id);
  const Presence* presence = pool ? d.find<Presence>(pool->owner) : nullptr;
  return presence && presence->attachment == Attachment::kAttached;
}

// No two readable replicas of a pool share a page.
std::string check_overlaps(const Directory& d) {
  std::map<PoolId, std::vector<std::pair<uint64_t, const Replica*>>> placed;
  for (uint32_t s = 0; s < d.replicas().slot_limit(); ++s) {
    const Replica& r = d.replicas().at(s).replica;
    const bool has_place = r.state == ReplicaState::kReady ||
                           (r.state == ReplicaState::kRetiring && r.why != Why::kWriterFenced &&
                            r.why != Why::kWriterAborted);
    if (r.id.valid() && has_place) placed[r.pool].push_back({r.offset, &r});
  }
  for (auto& [pool, list] : placed) {
    if (!is_verified(d, pool)) continue;
    std::sort(list.begin(), list.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 1; i < list.size(); ++i)
      if (list[i - 1].first + d.find<Pool>(pool)->pages_bytes(list[i - 1].second->size_bytes) >
          list[i].first)
        return "replicas " + to_text(list[i - 1].second->id) + " and " +
               to_text(list[i].second->id) + " share a page of pool " + to_text(pool);
  }
  return "";
}

std::string check_exports(const Directory& d, const Pool& pool) {
  const std::string name = "pool " + to_text(pool.id);
  if (pool.exports.empty()) return "";
  if (pool.spec.scope != Scope::kHost) return name + " is private and exported";
  if (pool.state == PoolState::kClosing) return name + " is being closed and exported";
  for (const PoolExport& e : pool.exports) {
    const Session* importer = d.find<Session>(e.importer);
    if (e.importer.valid() && (!importer || importer->node != pool.node))
      return name + " is exported to no worker of its node";
    if (e.imported && !e.importer.valid()) return name + " is read through a worker that is dead";
    if (pool.state == PoolState::kGone &&
        !std::binary_search(pool.importers.begin(), pool.importers.end(), e.life_name))
      return name + " is gone and does not wait for its importer " + e.life_name;
  }
  return "";
}

std::string check_pools(const Directory& d, Recount& recount) {
  for (const auto& [id, entry] : d.pools()) {
    if (!(entry.usage == recount.pools[id]))
      return "the usage of pool " + to_text(id) + " is not the sum of its replicas";
    if (entry.retiring != recount.retiring[id])
      return "the retiring list of pool " + to_text(id) + " and its replicas differ";
    if (entry.leased_replicas != recount.leased[id])
      return "pool " + to_text(id) + " miscounts its leased replicas";
    if (is_verified(d, id) &&
        entry.usage.allocated_bytes() > static_cast<int64_t>(entry.pool.spec.capacity_bytes))
      return "pool " + to_text(id) + " has more allocated than its capacity";
    int64_t listed = 0;
    for (uint32_t s = entry.head; s != ReplicaTable::kNone; s = d.replicas().at(s).pool_next)
      ++listed;
    if (listed != entry.usage.replicas())
      return "the list of pool " + to_text(id) + " does not hold its replicas";
    const bool is_owned = entry.pool.owner.valid();
    if (is_owned == (entry.pool.state == PoolState::kGone))
      return "pool " + to_text(id) + " is gone and owned, or neither";
    if (std::string broken = check_exports(d, entry.pool); !broken.empty()) return broken;
    if (is_owned && !d.find<Session>(entry.pool.owner))
      return "the owner of pool " + to_text(id) + " is no session";
  }
  return "";
}

std::string check_pins(const Directory& d, Recount& recount) {
  for (const auto& [id, pin] : d.pins()) {
    const Replica* replica = d.find<Replica>(id);
    if (!replica || replica->state != ReplicaState::kReady)
      return "pin on replica " + to_text(id) + ", which is not READY";
    if (d.pin_deadlines().contains({pin.expires, id}) != (pin.kind == PinKind::kSoft))
      return "the deadline index and the pin on replica " + to_text(id) + " differ";
    recount.pools[replica->pool] += usage_of(pin, *replica, *d.find<Pool>(replica->pool), +1);
  }
  return "";
}

std::string check_sessions(const Directory& d, Recount& recount) {
  for (const auto& [key, operation] : d.operations()) {
    ++recount.sessions[key.session].operations;
    const Session* session = d.find<Session>(key.session);
    if (!session) return "operation " + std::to_string(key.number) + " belongs to no session";
  }
  for (const auto& [id, session] : d.sessions()) {
    if (!(d.session_usage(id) == recount.sessions[id]))
      return "the counts of session " + to_text(id) + " are not those of its records";
    if (session.role == Role::kClient && session.worker.valid() && !d.find<Session>(session.worker))
      return "client session " + to_text(id) + " is attached through a worker that is no session";
    if (session.role == Role::kWorker && d.worker_by_name(session.name) != id)
      return "worker name " + session.name + " leads to another session";
  }
  for (const auto& [id, n] : d.namespaces())
    if (!(d.namespace_usage(id) == recount.namespaces[id]))
      return "the usage of namespace " + n.spec.name + " is not the sum of its replicas";
  for (const auto& [id, job] : d.jobs())
    if (job.kind == JobKind::kEndSession && !d.find<Session>(job.session))
      return "job " + to_text(id) + " ends a session that is gone";
  return "";
}

}  // namespace

std::string check_invariants(const Directory& d) {
  Recount recount;
  if (std::string broken = check_reservations(d, recount); !broken.empty()) return broken;
  if (std::string broken = check_leases(d, recount); !broken.empty()) return broken;
  for (uint32_t s = 0; s < d.replicas().slot_limit(); ++s)
    if (const ReplicaSlot& slot = d.replicas().at(s); slot.replica.id.valid())
      if (std::string broken = check_replica(d, slot, recount); !broken.empty()) return broken;
  if (std::string broken = check_pins(d, recount); !broken.empty()) return broken;
  if (std::string broken = check_pools(d, recount); !broken.empty()) return broken;
  if (std::string broken = check_sessions(d, recount); !broken.empty()) return broken;
  return check_overlaps(d);
}

}  // namespace berth
