#include "server/directory/directory.h"

#include <algorithm>

#include "common/check.h"

namespace berth {

// ---- install
// ---------------------------------------------------------------------------------------------

void Directory::install(const std::vector<Mutation>& mutations) {
  const auto is_alike = [](const Mutation& a, const Mutation& b) {
    return a.key.kind == b.key.kind && a.value.index() == b.value.index();
  };
  for (auto at = mutations.begin(); at != mutations.end();) {
    if (at->key.kind != RecordKind::kReplica) {
      install(*at++);
      continue;
    }
    const auto end =
        std::find_if_not(at, mutations.end(), [&](const Mutation& m) { return is_alike(*at, m); });
    if (std::holds_alternative<Replica>(at->value))
      install_replicas({at, end});
    else
      forget_replicas({at, end});
    at = end;
  }
}

void Directory::install(const Mutation& mutation) {
  if (std::holds_alternative<Forgotten>(mutation.value)) {
    forget(mutation.key);
    return;
  }
  visit_record(mutation.value, [this]<class R>(const R& record) {
    if constexpr (!std::is_same_v<R, Forgotten> && !std::is_same_v<R, Replica>) change(record);
  });
}

void Directory::change(const Namespace& n) {
  namespaces_[n.id] = n;
  namespace_names_[n.spec.name] = n.id;
  namespace_fingerprints_[n.fingerprint] = n.id;
}

void Directory::change(const Session& s) {
  if (const Session* old = find<Session>(s.id)) clients_by_worker_.erase({old->worker, s.id});
  sessions_[s.id] = s;
  if (s.role == Role::kWorker)
    worker_names_[s.name] = s.id;
  else
    clients_by_worker_.insert({s.worker, s.id});
}

void Directory::change(const Pool& p) {
  if (const PoolEntry* old = find_pool(p.id)) pools_by_owner_.erase({old->pool.owner, p.id});
  pools_[p.id].pool = p;
  pools_by_owner_.insert({p.owner, p.id});
}

void Directory::install_replicas(std::span<const Mutation> puts) {
  const auto add = [this](const Replica& like, int64_t count) { account(like, count); };
  AlikeReplicas before(add);
  AlikeReplicas after(add);
  PoolEntry* entry = nullptr;
  for (const Mutation& put : puts) {
    const Replica& r = std::get<Replica>(put.value);
    if (!entry || entry->pool.id != r.pool) entry = &pool_entry(r.pool);
    const uint32_t slot = slot_of(put);
    ReplicaState old_state = ReplicaState::kReserved;
    if (slot == ReplicaTable::kNone) {
      insert_replica(r, *entry);
    } else {
      Replica& replica = replicas_.at(slot).replica;
      before.add(replica, -1);
      old_state = replica.state;
      replica = r;
    }
    after.add(r, +1);
    if (r.state == ReplicaState::kRetiring)
      entry->retiring.insert(r.id);
    else if (old_state == ReplicaState::kRetiring)
      entry->retiring.erase(r.id);
  }
}

void Directory::change(const Reservation& r) {
  if (const Reservation* old = find<Reservation>(r.first))
    reservation_deadlines_.erase({old->deadline, r.first});
  else
    ++session_usage_[r.session].reservations;
  reservations_[r.first] = r;
  reservations_by_session_.insert({r.session, r.first});
  // An overdue reservation was asked for already; it waits for its answer, not for another
  // deadline.
  if (!r.quarantined) reservation_deadlines_.insert({r.deadline, r.first});
}

void Directory::change(const Lease& l) {
  if (const Lease* old = find<Lease>(l.id)) {
    lease_deadlines_.erase({old->expires, l.id});
  } else {
    ++session_usage_[l.session].leases;
    count_lease(l, +1);
  }
  leases_[l.id] = l;
  leases_by_session_.insert({l.session, l.id});
  if (!l.revoking) lease_deadlines_.insert({l.expires, l.id});
}

void Directory::change(const Pin& p) {
  forget_pin(p.replica);
  pins_[p.replica] = p;
  account(p, +1);
  if (p.kind == PinKind::kSoft) pin_deadlines_.insert({p.expires, p.replica});
}

void Directory::change(const Operation& o) {
  const auto [it, is_new] = operations_.insert_or_assign({o.session, o.number}, o);
  if (is_new) ++session_usage_[o.session].operations;
}

void Directory::change(const SeenReplica& s) {
  const uint32_t slot = replicas_.slot_of(s.replica);
  if (slot != ReplicaTable::kNone) replicas_.at(slot).seen = s.incarnation;
}

// ---- forget
// -----------------------------------------------------------------------------------------------

void Directory::forget(const RecordKey& key) {
  switch (key.kind) {
    case RecordKind::kMeta:
      BERTH_CHECK(false, "the store header is never forgotten");
      break;
    case RecordKind::kNamespace:
      forget_namespace(NamespaceId(key.first));
      break;
    case RecordKind::kSession:
      forget_session(SessionId(key.first));
      break;
    case RecordKind::kPool:
      forget_pool(PoolId(key.first));
      break;
    case RecordKind::kReplica:
      BERTH_CHECK(false, "replicas are forgotten together");
      break;
    case RecordKind::kReservation:
      forget_reservation(ReplicaId(key.first));
      break;
    case RecordKind::kLease:
      forget_lease(LeaseId(key.first));
      break;
    case RecordKind::kOperation:
      forget_operation({SessionId(key.first), key.second});
      break;
    case RecordKind::kJob:
      jobs_.erase(JobId(key.first));
      break;
    case RecordKind::kPin:
      forget_pin(ReplicaId(key.first));
      break;
    case RecordKind::kEvictionSetting:
      eviction_setting_.reset();
      break;
    case RecordKind::kPresence:
      presence_.erase(SessionId(key.first));
      break;
    case RecordKind::kPoolReport:
      reports_.erase(PoolId(key.first));
      break;
    case RecordKind::kSeenReplica:
      break;
    case RecordKind::kSeenLease:
      seen_leases_.erase(LeaseId(key.first));
      break;
  }
}

void Directory::forget_namespace(NamespaceId id) {
  const auto it = namespaces_.find(id);
  if (it == namespaces_.end()) return;
  namespace_names_.erase(it->second.spec.name);
  namespace_fingerprints_.erase(it->second.fingerprint);
  namespaces_.erase(it);
}

void Directory::forget_session(SessionId id) {
  const auto it = sessions_.find(id);
  if (it == sessions_.end()) return;
  const Session& s = it->second;
  clients_by_worker_.erase({s.worker, id});
  // The name may belong to the successor already.
  if (const auto name = worker_names_.find(s.name);
      name != worker_names_.end() && name->second == id)
    worker_names_.erase(name);
  sessions_.erase(it);
  presence_.erase(id);
  session_usage_.erase(id);
}

void Directory::forget_pool(PoolId id) {
  const auto it = pools_.find(id);
  if (it == pools_.end()) return;
  BERTH_CHECK(it->second.head == ReplicaTable::kNone, "a pool is forgotten only when it is empty");
  pools_by_owner_.erase({it->second.pool.owner, id});
  reports_.erase(id);
  pools_.erase(it);
}

void Directory::forget_replicas(std::span<const Mutation> forgets) {
  AlikeReplicas before([this](const Replica& like, int64_t count) { account(like, count); });
  PoolEntry* entry = nullptr;
  for (const Mutation& mutation : forgets) {
    const uint32_t slot = slot_of(mutation);
    if (slot == ReplicaTable::kNone) continue;
    const ReplicaSlot& s = replicas_.at(slot);
    if (!entry || entry->pool.id != s.replica.pool) entry = &pool_entry(s.replica.pool);
    before.add(s.replica, -1);
    if (s.lease_count > 0) {
      --entry->leased_replicas;
      leases_of_unknown_[s.replica.id] = s.lease_count;
    }
    if (s.replica.state == ReplicaState::kRetiring) entry->retiring.erase(s.replica.id);
    replicas_.erase(slot, entry->head);
  }
}

void Directory::forget_reservation(ReplicaId first) {
  const auto it = reservations_.find(first);
  if (it == reservations_.end()) return;
  --session_usage_[it->second.session].reservations;
  reservation_deadlines_.erase({it->second.deadline, first});
  reservations_by_session_.erase({it->second.session, first});
  reservations_.erase(it);
}

void Directory::forget_lease(LeaseId id) {
  const auto it = leases_.find(id);
  if (it == leases_.end()) return;
  --session_usage_[it->second.session].leases;
  count_lease(it->second, -1);
  lease_deadlines_.erase({it->second.expires, id});
  leases_by_session_.erase({it->second.session, id});
  leases_.erase(it);
  seen_leases_.erase(id);
}

// Before its replica: mutations forget kinds in the opposite order of RecordKind.
void Directory::forget_pin(ReplicaId id) {
  const auto it = pins_.find(id);
  if (it == pins_.end()) return;
  account(it->second, -1);
  pin_deadlines_.erase({it->second.expires, id});
  pins_.erase(it);
}

void Directory::forget_operation(OperationKey key) {
  if (operations_.erase(key) > 0) --session_usage_[key.session].operations;
}

// ---- what follows
// -----------------------------------------------------------------------------------------

void Directory::account(const Replica& replica, int64_t count) {
  PoolEntry& entry = pool_entry(replica.pool);
  entry.usage += usage_of(replica, entry.pool, count);
  namespace_usage_[replica.key.namespace_id()] += namespace_usage_of(replica, entry.pool, count);
}

void Directory::account(const Pin& pin, int sign) {
  const Replica* replica = find<Replica>(pin.replica);
  BERTH_CHECK(replica, "a pin is on a replica that exists");
  PoolEntry& entry = pool_entry(replica->pool);
  entry.usage += usage_of(pin, *replica, entry.pool, sign);
}

void Directory::count_lease(const Lease& lease, int sign) {
  PoolEntry* entry = nullptr;
  std::vector<uint32_t> slots(lease.replicas.size());
  replicas_.slots_of(lease.replicas, slots);
  for (size_t i = 0; i < slots.size(); ++i) {
    const ReplicaId id = lease.replicas[i];
    const uint32_t slot = slots[i];
    if (slot == ReplicaTable::kNone) {
      count_lease_of_unknown(id, sign);
      continue;
    }
    ReplicaSlot& s = replicas_.at(slot);
    if (!entry || entry->pool.id != s.replica.pool) entry = &pool_entry(s.replica.pool);
    if (s.lease_count == 0) ++entry->leased_replicas;
    s.lease_count += static_cast<uint32_t>(sign);
    if (s.lease_count == 0) --entry->leased_replicas;
  }
}

void Directory::count_lease_of_unknown(ReplicaId id, int sign) {
  uint32_t& count = leases_of_unknown_[id];
  count += static_cast<uint32_t>(sign);
  if (count == 0) leases_of_unknown_.erase(id);
}

uint32_t Directory::slot_of(const Mutation& mutation) const {
  const ReplicaId id(mutation.key.first);
  return replicas_.is_at(mutation.slot, id) ? mutation.slot : replicas_.slot_of(id);
}

void Directory::insert_replica(const Replica& replica, PoolEntry& entry) {
  const uint32_t slot = replicas_.insert(replica, entry.head);
  if (leases_of_unknown_.empty()) return;
  const auto leased = leases_of_unknown_.find(replica.id);
  if (leased == leases_of_unknown_.end()) return;
  replicas_.at(slot).lease_count = leased->second;
  ++entry.leased_replicas;
  leases_of_unknown_.erase(leased);
}

PoolEntry& Directory::pool_entry(PoolId id) {
  const auto it = pools_.find(id);
  BERTH_CHECK(it != pools_.end(), "a replica lies in a pool that is registered");
  return it->second;
}

const PoolEntry* Directory::find_pool(PoolId id) const {
  const auto it = pools_.find(id);
  return it == pools_.end() ? nullptr : &it->second;
}

NamespaceUsage Directory::namespace_usage(NamespaceId id) const {
  const auto it = namespace_usage_.find(id);
  return it == namespace_usage_.end() ? NamespaceUsage{} : it->second;
}

SessionUsage Directory::session_usage(SessionId id) const {
  const auto it = session_usage_.find(id);
  return it == session_usage_.end() ? SessionUsage{} : it->second;
}

uint32_t Directory::lease_count(ReplicaId id) const {
  const uint32_t slot = replicas_.slot_of(id);
  if (slot != ReplicaTable::kNone) return replicas_.at(slot).lease_count;
  const auto it = leases_of_unknown_.find(id);
  return it == leases_of_unknown_.end() ? 0 : it->second;
}

const Namespace* Directory::namespace_by_name(const std::string& name) const {
  const auto it = namespace_names_.find(name);
  return it == namespace_names_.end() ? nullptr : find<Namespace>(it->second);
}

const Namespace* Directory::namespace_by_fingerprint(const Fingerprint& fingerprint) const {
  const auto it = namespace_fingerprints_.find(fingerprint);
  return it == namespace_fingerprints_.end() ? nullptr : find<Namespace>(it->second);
}

SessionId Directory::worker_by_name(const std::string& name) const {
  const auto it = worker_names_.find(name);
  return it == worker_names_.end() ? SessionId() : it->second;
}

std::vector<PoolId> Directory::pools_of(SessionId owner) const {
  std::vector<PoolId> out;
  for (auto it = pools_by_owner_.lower_bound({owner, PoolId()});
       it != pools_by_owner_.end() && it->first == owner; ++it)
    out.push_back(it->second);
  return out;
}

std::vector<SessionId> Directory::clients_of(SessionId worker) const {
  std::vector<SessionId> out;
  for (auto it = clients_by_worker_.lower_bound({worker, SessionId()});
       it != clients_by_worker_.end() && it->first == worker; ++it)
    out.push_back(it->second);
  return out;
}

bool Directory::is_present(SessionId worker) const {
  const Presence* presence = find<Presence>(worker);
  return presence && presence->attachment == Attachment::kAttached && !presence->silent;
}

std::vector<Replica> replicas_of(const Reservation& reservation) {
  std::vector<Replica> out(reservation.items.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const ReservedItem& item = reservation.items[i];
    Replica& replica = out[i];
    replica.id = reservation.replica_of(item);
    replica.key = item.key;
    replica.pool = item.pool;
    replica.size_bytes = item.size_bytes;
    replica.state = reservation.quarantined ? ReplicaState::kQuarantined : ReplicaState::kReserved;
    replica.why = reservation.quarantined ? Why::kWriteOverdue : Why::kNone;
    replica.in_reservation = true;
  }
  return out;
}

std::vector<Mutation> expand(const Reservation& reservation) {
  std::vector<Mutation> out{put_of(reservation)};
  for (const Replica& replica : replicas_of(reservation)) out.push_back(put_of(replica));
  return out;
}

}  // namespace berth
