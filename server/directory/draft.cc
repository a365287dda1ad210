#include "server/directory/draft.h"

#include <algorithm>

#include "common/check.h"

namespace berth {

void Draft::stage(Mutation mutation) {
  const RecordKey key = mutation.key;
  account(key, -1);
  const auto position = static_cast<uint32_t>(staged_.size());
  Staged staged{std::move(mutation), newest(key)};
  if (staged.previous == kNone)
    newest_.insert(hash_of_key(key), position);
  else
    newest_.replace(hash_of_key(key), staged.previous, position);
  ++staged_of_kind_[static_cast<size_t>(key.kind)];
  staged_.push_back(std::move(staged));
  if (key.kind == RecordKind::kReplica) {
    runs_.override_at(ReplicaId(key.first));
    index_runs();
    if (std::holds_alternative<Replica>(staged_.back().mutation.value))
      index_by_object({.at = position});
  }
  account(key, +1);
}

bool Draft::stage_run(StagedRuns::Run& run) {
  if (runs_.overlaps(run.first(), run.last())) return false;
  if (is_staged(RecordKind::kReplica))
    for (const Replica& replica : run.replicas)
      if (newest(RecordTraits<Replica>::key(replica.id)) != kNone) return false;
  run.position = staged_.size();
  account(run, +1);
  runs_.push(std::move(run));
  return true;
}

void Draft::put_together(std::vector<Replica> replicas, std::vector<uint32_t> slots) {
  if (replicas.empty()) return;
  StagedRuns::Run run{.replicas = std::move(replicas), .slots = std::move(slots)};
  if (stage_run(run)) return;
  for (Replica& replica : run.replicas) put(std::move(replica));
}

void Draft::forget_together(std::vector<ReplicaId> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  StagedRuns::Run run{.forgets = true};
  const ReplicaTable& table = base_.replicas();
  std::vector<uint32_t> slots(ids.size());
  table.slots_of(ids, slots);
  for (size_t i = 0; i < ids.size(); ++i) {
    const ReplicaId id = ids[i];
    const uint32_t slot = slots[i];
    if (find<Pin>(id)) stage(Mutation{RecordTraits<Pin>::key(id), Forgotten{}});
    if (slot != ReplicaTable::kNone) {
      run.replicas.push_back(table.at(slot).replica);
      run.slots.push_back(slot);
    } else if (find<Replica>(id)) {
      forget<Replica>(id);  // made by this very batch
    }
  }
  if (run.replicas.empty() || stage_run(run)) return;
  for (const Replica& replica : run.replicas) forget<Replica>(replica.id);
}

// ---- Roll-back
// ------------------------------------------------------------------------------------------------

void Draft::roll_back_to(const Savepoint& savepoint) {
  while (staged_.size() > savepoint.staged || runs_.size() > savepoint.runs) {
    const bool run_is_last =
        runs_.size() > savepoint.runs && runs_.all().back().position == staged_.size();
    if (run_is_last)
      roll_back_run();
    else
      roll_back_single();
  }
  events_.resize(savepoint.events);
  asks_.resize(savepoint.asks);
  sync_ = savepoint.sync;
}

void Draft::roll_back_run() {
  if (indexed_runs_ == runs_.size()) {
    if (runs_.all().back().is_new())
      for (size_t i = 0; i < runs_.all().back().replicas.size(); ++i) forget_last_written();
    --indexed_runs_;
  }
  account(runs_.all().back(), -1);
  runs_.pop();
}

void Draft::roll_back_single() {
  const Staged& last = staged_.back();
  const RecordKey key = last.mutation.key;
  account(key, -1);
  fold_lease_changes();  // they point to what goes now
  if (std::holds_alternative<Replica>(last.mutation.value)) forget_last_written();
  const auto position = static_cast<uint32_t>(staged_.size() - 1);
  if (last.previous == kNone)
    newest_.erase(hash_of_key(key), position);
  else
    newest_.replace(hash_of_key(key), position, last.previous);
  --staged_of_kind_[static_cast<size_t>(key.kind)];
  staged_.pop_back();
  account(key, +1);
}

// ---- What was written
// ------------------------------------------------------------------------------------------

uint32_t Draft::newest(const RecordKey& key) const {
  return newest_.find(hash_of_key(key),
                      [&](uint32_t at) { return staged_[at].mutation.key == key; });
}

const RecordValue* Draft::staged_value(const RecordKey& key) const {
  const uint32_t at = newest(key);
  return at == kNone ? nullptr : &staged_[at].mutation.value;
}

const Replica* Draft::find_replica(ReplicaId id, uint32_t slot) const {
  if (is_staged(RecordKind::kReplica))
    if (const RecordValue* value = staged_value(RecordTraits<Replica>::key(id)))
      return std::get_if<Replica>(value);
  if (runs_.size() > 0)
    if (const auto replica = runs_.find(id)) return *replica;
  return slot == ReplicaTable::kNone ? nullptr : &base_.replicas().at(slot).replica;
}

const Replica& Draft::replica_at(const Written& written) const {
  return written.run == kNone ? std::get<Replica>(staged_[written.at].mutation.value)
                              : runs_.all()[written.run].replicas[written.at];
}

void Draft::index_by_object(Written written) const {
  const ObjectKey& key = replica_at(written).key;
  const uint64_t hash = hash_of(key);
  const auto position = static_cast<uint32_t>(written_.size());
  written.older =
      by_object_.find(hash, [&](uint32_t other) { return replica_at(written_[other]).key == key; });
  written_.push_back(written);
  if (written.older == kNone)
    by_object_.insert(hash, position);
  else
    by_object_.replace(hash, written.older, position);
}

// Keeps written_ in the order of the writes, so it goes before any single write.
void Draft::index_runs() const {
  for (; indexed_runs_ < runs_.size(); ++indexed_runs_) {
    const StagedRuns::Run& run = runs_.all()[indexed_runs_];
    if (!run.is_new()) continue;  // the table leads to them
    for (size_t i = 0; i < run.replicas.size(); ++i)
      index_by_object({static_cast<uint32_t>(indexed_runs_), static_cast<uint32_t>(i)});
  }
}

void Draft::forget_last_written() {
  const Written& last = written_.back();
  const uint64_t hash = hash_of(replica_at(last).key);
  const auto position = static_cast<uint32_t>(written_.size() - 1);
  if (last.older == kNone)
    by_object_.erase(hash, position);
  else
    by_object_.replace(hash, position, last.older);
  written_.pop_back();
}

// ---- The end of a batch
// ----------------------------------------------------------------------------------------

// Of a replica: what the directory has of it so far.
void Draft::note_base(Mutation& mutation, uint32_t slot) const {
  mutation.slot = slot;
  const auto* after = std::get_if<Replica>(&mutation.value);
  mutation.is_first_record =
      after && !after->in_reservation &&
      (slot == ReplicaTable::kNone || base_.replicas().at(slot).replica.in_reservation);
}

std::vector<Mutation> Draft::take_mutations() {
  const auto rank_of = [](const Mutation& m) {
    const auto kind = static_cast<size_t>(m.key.kind);
    return std::holds_alternative<Forgotten>(m.value) ? 2 * kKinds - 1 - kind : kind;
  };
  std::array<size_t, 2 * kKinds + 1> start{};
  const auto counts = [&](size_t at) {
    return newest(staged_[at].mutation.key) == static_cast<uint32_t>(at);
  };
  const auto is_written_again = [&](const Replica& replica) {
    return newest(RecordTraits<Replica>::key(replica.id)) != kNone;
  };
  std::vector<bool> final_form(staged_.size());
  for (size_t at = 0; at < staged_.size(); ++at)
    if (counts(at)) {
      final_form[at] = true;
      ++start[rank_of(staged_[at].mutation) + 1];
    }
  const auto rank_of_run = [](const StagedRuns::Run& run) {
    constexpr auto kReplicas = static_cast<size_t>(RecordKind::kReplica);
    return run.forgets ? 2 * kKinds - 1 - kReplicas : kReplicas;
  };
  for (const StagedRuns::Run& run : runs_.all())
    start[rank_of_run(run) + 1] +=
        run.is_overridden ? static_cast<size_t>(std::count_if(
                                run.replicas.begin(), run.replicas.end(),
                                [&](const Replica& replica) { return !is_written_again(replica); }))
                          : run.replicas.size();
  for (size_t rank = 1; rank < start.size(); ++rank) start[rank] += start[rank - 1];

  std::vector<Mutation> out(start.back());
  size_t next_run = 0;
  const auto take_run = [&](const StagedRuns::Run& run) {
    size_t& next = start[rank_of_run(run)];
    for (size_t i = 0; i < run.replicas.size(); ++i) {
      const Replica& replica = run.replicas[i];
      if (run.is_overridden && is_written_again(replica)) continue;
      Mutation& mutation = out[next++];
      mutation.key = RecordTraits<Replica>::key(replica.id);
      if (!run.forgets) mutation.value.emplace<Replica>(replica);
      note_base(mutation, run.is_new() ? ReplicaTable::kNone : run.slots[i]);
    }
  };
  for (size_t at = 0; at <= staged_.size(); ++at) {
    while (next_run < runs_.size() && runs_.all()[next_run].position <= at)
      take_run(runs_.all()[next_run++]);
    if (at < staged_.size() && final_form[at]) {
      Mutation& mutation = staged_[at].mutation;
      if (mutation.key.kind == RecordKind::kReplica)
        note_base(mutation, base_.replicas().slot_of(ReplicaId(mutation.key.first)));
      out[start[rank_of(mutation)]++] = std::move(mutation);
    }
  }
  return out;
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

void Draft::account(const Replica& replica, int64_t count) {
  const Pool* pool = find<Pool>(replica.pool);
  BERTH_CHECK(pool, "a replica lies in a pool that is registered");
  pool_usage_[replica.pool] += usage_of(replica, *pool, count);
  namespace_usage_[replica.key.namespace_id()] += namespace_usage_of(replica, *pool, count);
}

void Draft::account(const Pin& pin, int sign) {
  const Replica* replica = find<Replica>(pin.replica);
  BERTH_CHECK(replica, "a pin is on a replica that exists");
  pin_count_ += sign;
  pool_usage_[replica->pool] += usage_of(pin, *replica, *find<Pool>(replica->pool), sign);
}

void Draft::account(const Lease& lease, int sign) {
  session_usage_[lease.session].leases += sign;
  lease_changes_.emplace_back(&lease, sign);
}

void Draft::fold_lease_changes() const {
  for (const auto& [lease, sign] : lease_changes_)
    for (const ReplicaId replica : lease->replicas) lease_count_[replica] += sign;
  lease_changes_.clear();
}

void Draft::account(const StagedRuns::Run& run, int sign) {
  const auto add = [this](const Replica& like, int64_t count) { account(like, count); };
  AlikeReplicas before(add);
  AlikeReplicas after(add);
  for (size_t i = 0; i < run.replicas.size(); ++i) {
    if (!run.is_new()) before.add(base_.replicas().at(run.slots[i]).replica, -sign);
    if (!run.forgets) after.add(run.replicas[i], sign);
  }
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
  fold_lease_changes();
  if (const auto it = lease_count_.find(id); it != lease_count_.end()) count += it->second;
  return count > 0 ? static_cast<uint32_t>(count) : 0;
}

uint32_t Draft::lease_count(ReplicaId id, uint32_t slot) const {
  if (slot == ReplicaTable::kNone || !lease_changes_.empty() || !lease_count_.empty())
    return lease_count(id);
  return base_.replicas().at(slot).lease_count;
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
