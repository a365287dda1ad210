#include "server/directory/draft.h"

#include <array>

#include "common/check.h"

namespace berth {

void Draft::stage(Mutation mutation) {
  const RecordKey key = mutation.key;
  account(key, -1);
  const auto position = static_cast<uint32_t>(staged_.size());
  Staged staged{std::move(mutation), kNone, kNone};
  const auto [newest, is_first] = newest_.try_emplace(key, position);
  if (!is_first) staged.previous = std::exchange(newest->second, position);
  if (const Replica* replica = std::get_if<Replica>(&staged.mutation.value)) {
    const auto [object, is_first_of_object] = newest_by_object_.try_emplace(replica->key, position);
    if (!is_first_of_object) staged.next_same_key = std::exchange(object->second, position);
  }
  staged_.push_back(std::move(staged));
  account(key, +1);
}

void Draft::roll_back_to(const Savepoint& savepoint) {
  while (staged_.size() > savepoint.staged) {
    const Staged& last = staged_.back();
    const RecordKey key = last.mutation.key;
    account(key, -1);
    if (const Replica* replica = std::get_if<Replica>(&last.mutation.value)) {
      if (last.next_same_key == kNone)
        newest_by_object_.erase(replica->key);
      else
        newest_by_object_[replica->key] = last.next_same_key;
    }
    if (last.previous == kNone)
      newest_.erase(key);
    else
      newest_[key] = last.previous;
    staged_.pop_back();
    account(key, +1);
  }
  events_.resize(savepoint.events);
  asks_.resize(savepoint.asks);
  sync_ = savepoint.sync;
}

std::vector<Mutation> Draft::take_mutations() {
  constexpr size_t kKinds = static_cast<size_t>(RecordKind::kSeenLease) + 1;
  const auto rank_of = [](const Mutation& m) {
    const auto kind = static_cast<size_t>(m.key.kind);
    return std::holds_alternative<Forgotten>(m.value) ? 2 * kKinds - 1 - kind : kind;
  };
  std::array<size_t, 2 * kKinds + 1> start{};
  for (const auto& [key, at] : newest_) ++start[rank_of(staged_[at].mutation) + 1];
  for (size_t rank = 1; rank < start.size(); ++rank) start[rank] += start[rank - 1];
  std::vector<Mutation> out(newest_.size());
  for (size_t at = 0; at < staged_.size(); ++at) {
    Mutation& mutation = staged_[at].mutation;
    if (newest_.at(mutation.key) == at) out[start[rank_of(mutation)]++] = std::move(mutation);
  }
  return out;
}

const RecordValue* Draft::staged_value(const RecordKey& key) const {
  const auto it = newest_.find(key);
  return it == newest_.end() ? nullptr : &staged_[it->second].mutation.value;
}

// ---- Derived figures
// ------------------------------------------------------------------------------------------

void Draft::account(const RecordKey& key, int sign) {
  switch (key.kind) {
    case RecordKind::kReplica:
      if (const Replica* replica = find<Replica>(ReplicaId(key.first))) account(*replica, sign);
      break;
    case RecordKind::kLease:
      if (const Lease* lease = find<Lease>(LeaseId(key.first))) account(*lease, sign);
      break;
    case RecordKind::kPin:
      if (const Pin* pin = find<Pin>(ReplicaId(key.first))) account(*pin, sign);
      break;
    case RecordKind::kReservation:
      if (const Reservation* reservation = find<Reservation>(ReplicaId(key.first)))
        session_usage_[reservation->session].reservations += sign;
      break;
    case RecordKind::kOperation:
      if (find<Operation>({SessionId(key.first), key.second}))
        session_usage_[SessionId(key.first)].operations += sign;
      break;
    default:
      break;
  }
}

void Draft::account(const Replica& replica, int sign) {
  const Pool* pool = find<Pool>(replica.pool);
  BERTH_CHECK(pool, "a replica lies in a pool that is registered");
  pool_usage_[replica.pool] += usage_of(replica, *pool, sign);
  namespace_usage_[replica.key.namespace_id()] += namespace_usage_of(replica, *pool, sign);
}

void Draft::account(const Pin& pin, int sign) {
  const Replica* replica = find<Replica>(pin.replica);
  BERTH_CHECK(replica, "a pin is on a replica that exists");
  pin_count_ += sign;
  pool_usage_[replica->pool] += usage_of(pin, *replica, *find<Pool>(replica->pool), sign);
}

void Draft::account(const Lease& lease, int sign) {
  session_usage_[lease.session].leases += sign;
  for (const ReplicaId replica : lease.replicas) lease_count_[replica] += sign;
}

PoolUsage Draft::pool_usage(PoolId id) const {
  PoolUsage usage;
  if (const PoolEntry* entry = base_.find_pool(id)) usage = entry->usage;
  if (const auto it = pool_usage_.find(id); it != pool_usage_.end()) usage += it->second;
  return usage;
}

NamespaceUsage Draft::namespace_usage(NamespaceId id) const {
  NamespaceUsage usage = base_.namespace_usage(id);
  if (const auto it = namespace_usage_.find(id); it != namespace_usage_.end()) usage += it->second;
  return usage;
}

SessionUsage Draft::session_usage(SessionId id) const {
  SessionUsage usage = base_.session_usage(id);
  if (const auto it = session_usage_.find(id); it != session_usage_.end()) {
    usage.operations += it->second.operations;
    usage.reservations += it->second.reservations;
    usage.leases += it->second.leases;
  }
  return usage;
}

uint32_t Draft::lease_count(ReplicaId id) const {
  int64_t count = base_.lease_count(id);
  if (const auto it = lease_count_.find(id); it != lease_count_.end()) count += it->second;
  return count > 0 ? static_cast<uint32_t>(count) : 0;
}

bool Draft::is_present(SessionId worker) const {
  const Presence* presence = find<Presence>(worker);
  return presence && presence->attachment == Attachment::kAttached && !presence->silent;
}

Incarnation Draft::seen(ReplicaId id) const {
  if (const RecordValue* value = staged_value(RecordTraits<SeenReplica>::key(id)))
    return std::get<SeenReplica>(*value).incarnation;
  const uint32_t slot = base_.replicas().slot_of(id);
  return slot == ReplicaTable::kNone ? 0 : base_.replicas().at(slot).seen;
}

// ---- Indexes, with what this batch staged
// -----------------------------------------------------------------------

std::vector<PoolId> Draft::pools_of(SessionId owner) const {
  std::vector<PoolId> out;
  for (const PoolId id : base_.pools_of(owner))
    if (const Pool* pool = find<Pool>(id); pool && pool->owner == owner) out.push_back(id);
  each_staged<Pool>([&](const Pool& pool) {
    const PoolEntry* old = base_.find_pool(pool.id);
    if (pool.owner == owner && !(old && old->pool.owner == owner)) out.push_back(pool.id);
  });
  return out;
}

std::vector<SessionId> Draft::clients_of(SessionId worker) const {
  std::vector<SessionId> out;
  for (const SessionId id : base_.clients_of(worker))
    if (const Session* s = find<Session>(id); s && s->worker == worker) out.push_back(id);
  each_staged<Session>([&](const Session& s) {
    const Session* old = base_.find<Session>(s.id);
    if (s.role == Role::kClient && s.worker == worker && !(old && old->worker == worker))
      out.push_back(s.id);
  });
  return out;
}

const Namespace* Draft::namespace_by_name(const std::string& name) const {
  const Namespace* found = base_.namespace_by_name(name);
  if (found) found = find<Namespace>(found->id);
  each_staged<Namespace>([&](const Namespace& n) {
    if (n.spec.name == name) found = &n;
  });
  return found;
}

SessionId Draft::worker_by_name(const std::string& name) const {
  SessionId found = base_.worker_by_name(name);
  if (found.valid() && !find<Session>(found)) found = SessionId();
  each_staged<Session>([&](const Session& s) {
    if (s.role == Role::kWorker && s.name == name) found = s.id;
  });
  return found;
}

ReplicaId Draft::take_replica_ids(uint64_t count) {
  const ReplicaId first = make_id<ReplicaId>(meta().epoch, counters_.replica + 1);
  counters_.replica += count;
  BERTH_CHECK(counters_.replica < kIdCounterMax, "a trillion replicas were made under one epoch");
  return first;
}

}  // namespace berth
