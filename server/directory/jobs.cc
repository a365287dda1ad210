// Long work in slices: each RunJob changes at most about slice_records records and moves the job's
// durable cursor, so that other calls are answered in between and a restart goes on where the last
// slice ended. What a job means for visibility was done when it was started.
#include "server/directory/context.h"

namespace berth {

JobId start_job(const Context& c, Job job) {
  job.id = c.draft.take_id<JobId>();
  c.draft.require_sync();
  c.draft.emit({.kind = EventKind::kJobStarted,
                .session = job.session,
                .pool = job.pool,
                .namespace_id = job.namespace_id});
  const JobId id = job.id;
  c.draft.put(std::move(job));
  return id;
}

const Job* find_job(const Context& c, JobKind kind, PoolId pool, NamespaceId ns) {
  for (const auto& [id, installed] : c.draft.base().jobs()) {
    const Job* job = c.draft.find<Job>(id);
    if (job && job->kind == kind && (!pool.valid() || job->pool == pool) &&
        (!ns.valid() || job->namespace_id == ns))
      return job;
  }
  return nullptr;
}

void finish_job(const Context& c, const Job& job, std::string reason) {
  const JobId id = job.id;
  c.draft.emit({.kind = EventKind::kJobDone,
                .session = job.session,
                .pool = job.pool,
                .count = job.done,
                .namespace_id = job.namespace_id,
                .reason = std::move(reason)});
  c.draft.forget<Job>(id);
}

namespace {

struct Slice {
  uint32_t left;
  bool is_used_up() const { return left == 0; }
  void spend(size_t records) { left -= std::min<uint32_t>(left, static_cast<uint32_t>(records)); }
};

bool finish(const Context& c, const Job& job) {
  finish_job(c, job);
  return false;
}

bool go_on(const Context& c, Job job, uint64_t done, uint64_t cursor) {
  job.done += done;
  job.cursor = cursor;
  c.draft.put(std::move(job));
  return true;
}

// The pool's memory is proven gone: its replicas are forgotten, whoever leased them.
bool drop_pool(const Context& c, const Job& job) {
  const PoolEntry* entry = c.draft.base().find_pool(job.pool);
  std::vector<ReplicaId> dropped;
  if (entry) {
    const ReplicaTable& table = c.draft.base().replicas();
    for (uint32_t slot = entry->head;
         slot != ReplicaTable::kNone && dropped.size() < c.config.slice_records;
         slot = table.at(slot).pool_next)
      if (const ReplicaId id = table.at(slot).replica.id; c.draft.find<Replica>(id))
        dropped.push_back(id);
  }
  if (!dropped.empty()) {
    c.draft.emit({.kind = EventKind::kDropped,
                  .pool = job.pool,
                  .replica = dropped.front(),
                  .count = dropped.size(),
                  .reason = "its owner is gone"});
    drop(c, dropped);
  }
  if (c.draft.pool_usage(job.pool).replicas() > 0) return go_on(c, job, dropped.size(), 0);
  const PoolId pool = job.pool;
  finish(c, job);
  forget_pool_if_over(c, pool);
  return false;
}

// Collects what `wanted` says of a pool's list from the cursor on. Answers where the next slice
// goes on; none: the list was walked to its end. Looking costs less than changing, so a slice has
// more looks than it may retire.
template <class Wanted>
ReplicaId collect(const Context& c, const PoolEntry& entry, ReplicaId cursor, uint32_t& looks,
                  Wanted wanted, std::vector<ReplicaId>& found) {
  const ReplicaTable& table = c.draft.base().replicas();
  uint32_t slot = entry.head;
  if (cursor.valid())
    if (const uint32_t at = table.slot_of(cursor); at != ReplicaTable::kNone) slot = at;
  for (; slot != ReplicaTable::kNone; slot = table.at(slot).pool_next) {
    const ReplicaId id = table.at(slot).replica.id;
    if (found.size() == c.config.slice_records || looks-- == 0) return id;
    const Replica* replica = c.draft.find<Replica>(id);
    if (replica && can_retire(*replica) && wanted(*replica)) found.push_back(id);
  }
  return ReplicaId();
}

// Retires a slice of a pool's replicas. True: there is more to do now.
bool empty_pool(const Context& c, const Job& job, const PoolEntry& entry, Why why) {
  std::vector<ReplicaId> found;
  uint32_t looks = c.config.slice_records * 4;
  const ReplicaId next = collect(
      c, entry, ReplicaId(job.cursor), looks, [](const Replica&) { return true; }, found);
  retire_all(c, found, why);
  if (!found.empty() || next.valid()) go_on(c, job, found.size(), next.value());
  return next.valid();
}

// Drained close: every READY replica retires; leases keep what they protect until they end.
bool close_pool(const Context& c, const Job& job) {
  const PoolId pool = job.pool;
  const PoolEntry* entry = c.draft.base().find_pool(pool);
  if (entry && empty_pool(c, job, *entry, Why::kPoolClosing)) return true;
  finish(c, *c.draft.find<Job>(job.id));
  forget_pool_if_over(c, pool);
  return false;
}

// The same for a pool that stays. It ends when the last page is free, so that whoever waits for it
// may pull the memory.
bool drain_pool(const Context& c, const Job& job) {
  const PoolEntry* entry = c.draft.base().find_pool(job.pool);
  const Pool* pool = c.draft.find<Pool>(job.pool);
  if (!entry || !pool || pool->state != PoolState::kDraining) return finish(c, job);
  const PoolUsage usage = c.draft.pool_usage(job.pool);
  if (usage.replicas() == 0) {
    c.draft.emit({.kind = EventKind::kPoolDrained, .session = pool->owner, .pool = job.pool});
    return finish(c, job);
  }
  return usage.ready_replicas + usage.quarantined_replicas > 0 &&
         empty_pool(c, job, *entry, Why::kPoolDraining);
}

bool evict_namespace(const Context& c, const Job& job) {
  const Namespace* ns = c.draft.find<Namespace>(job.namespace_id);
  const auto is_meant = [&](const Replica& replica) {
    return replica.key.namespace_id() == ns->id && replica.id < ns->evicted_below;
  };
  std::vector<ReplicaId> found;
  uint32_t looks = c.config.slice_records * 16;
  Job next = job;
  const auto& pools = c.draft.base().pools();
  auto it = pools.lower_bound(job.pool);
  ReplicaId cursor =
      it != pools.end() && it->first == job.pool ? ReplicaId(job.cursor) : ReplicaId();
  bool is_over = true;
  for (; it != pools.end(); ++it) {
    const ReplicaId stopped_at = collect(c, it->second, cursor, looks, is_meant, found);
    cursor = ReplicaId();
    if (!stopped_at.valid()) continue;
    next.pool = it->first;
    cursor = stopped_at;
    is_over = false;
    break;
  }
  next.done += found.size();
  next.cursor = cursor.value();
  retire_all(c, found, Why::kNamespaceEvicted);
  if (is_over) return finish(c, next);
  c.draft.put(std::move(next));
  return true;
}

// The policy's slices do the work (MakeRoom); here it only ends.
bool trim_pool(const Context& c, const Job& job) {
  const Pool* pool = c.draft.find<Pool>(job.pool);
  if (pool && pool->state != PoolState::kGone &&
      c.draft.pool_usage(job.pool).held_bytes() > job.target_bytes)
    return false;
  return finish(c, job);
}

// A reservation of a session that is over: its writer is proven gone, so the owner may take the
// pages back.
void abandon(const Context& c, const Reservation& reservation) {
  const Reservation closed = reservation;
  std::vector<ReplicaId> gone;
  for (const ReservedItem& item : closed.items) {
    const Replica* replica = c.draft.find<Replica>(closed.replica_of(item));
    const Pool* pool = c.draft.find<Pool>(item.pool);
    if (pool->state == PoolState::kGone)
      gone.push_back(replica->id);
    else
      retire(c, *replica, Why::kWriterFenced);
  }
  c.draft.forget<Reservation>(closed.first);
  c.draft.forget_together(std::move(gone));
}

bool end_session(const Context& c, const Job& job) {
  const Directory& directory = c.draft.base();
  const SessionId session = job.session;
  Slice slice{c.config.slice_records};
  const auto& leases = directory.leases_by_session();
  for (auto it = leases.lower_bound({session, LeaseId()});
       it != leases.end() && it->first == session && !slice.is_used_up(); ++it) {
    const Lease* lease = c.draft.find<Lease>(it->second);
    if (!lease) continue;
    slice.spend(1 + lease->replicas.size() / 8);
    end_lease(c, *lease, "its session ended");
  }
  const auto& reservations = directory.reservations_by_session();
  for (auto it = reservations.lower_bound({session, ReplicaId()});
       it != reservations.end() && it->first == session && !slice.is_used_up(); ++it) {
    const Reservation* reservation = c.draft.find<Reservation>(it->second);
    if (!reservation) continue;
    slice.spend(1 + reservation->items.size());
    abandon(c, *reservation);
  }
  const auto& operations = directory.operations();
  for (auto it = operations.lower_bound({session, 0});
       it != operations.end() && it->first.session == session && !slice.is_used_up(); ++it) {
    if (!c.draft.find<Operation>(it->first)) continue;
    slice.spend(1);
    c.draft.forget<Operation>(it->first);
  }
  const SessionUsage left = c.draft.session_usage(session);
  if (left.leases + left.reservations + left.operations > 0)
    return go_on(c, job, c.config.slice_records - slice.left, 0);
  c.draft.forget<Session>(session);
  c.draft.emit({.kind = EventKind::kSessionEnded, .session = session});
  return finish(c, job);
}

}  // namespace

Result<Outcome> handle(const Context& c, const RunJob& command) {
  const Job* job = c.draft.find<Job>(command.job);
  if (!job) return JobRan{false};
  switch (job->kind) {
    case JobKind::kDropPool:
      return JobRan{drop_pool(c, *job)};
    case JobKind::kEndSession:
      return JobRan{end_session(c, *job)};
    case JobKind::kClosePool:
      return JobRan{close_pool(c, *job)};
    case JobKind::kDrainPool:
      return JobRan{drain_pool(c, *job)};
    case JobKind::kEvictNamespace:
      return JobRan{evict_namespace(c, *job)};
    case JobKind::kTrimPool:
      return JobRan{trim_pool(c, *job)};
  }
  return JobRan{false};
}

}  // namespace berth
