// Handlers of draining: an operator takes pools out of use, and back. Hidden at once, emptied in
// slices by a job (jobs.cc); the memory stays registered.
#include "common/text.h"
#include "server/directory/context.h"

namespace berth {
namespace {

// The pools that are meant. Errors: invalid_argument, unknown_session.
Result<std::vector<PoolId>> pools_named(const Context& c, PoolId pool, SessionId worker) {
  if (pool.valid() == worker.valid())
    return refuse(Reason::kInvalidArgument, "name either a pool or a worker");
  if (pool.valid()) {
    const Pool* known = c.draft.find<Pool>(pool);
    if (!known || known->state == PoolState::kGone)
      return refuse(Reason::kInvalidArgument, "no pool " + to_text(pool) + " in use");
    return std::vector<PoolId>{pool};
  }
  const Session* session = c.draft.find<Session>(worker);
  if (!session || session->role != Role::kWorker)
    return refuse(Reason::kUnknownSession, "no worker session " + to_text(worker));
  return c.draft.pools_of(worker);
}

void change_state(const Context& c, PoolId id, PoolState state, EventKind event) {
  Pool changed = *c.draft.find<Pool>(id);
  changed.state = state;
  c.draft.emit({.kind = event, .session = changed.owner, .pool = id});
  if (state != PoolState::kOpen) ask_to_drop_imports(c, changed);
  c.draft.put(std::move(changed));
  c.draft.require_sync();
}

}  // namespace

Result<Outcome> handle(const Context& c, const Drain& command) {
  const Result<std::vector<PoolId>> pools = pools_named(c, command.pool, command.worker);
  if (!pools) return tl::unexpected(pools.error());
  Draining answer{*pools, 0};
  for (const PoolId id : *pools) {
    if (c.draft.find<Pool>(id)->state == PoolState::kOpen) {
      change_state(c, id, PoolState::kDraining, EventKind::kPoolDraining);
      start_job(c, {.kind = JobKind::kDrainPool, .pool = id});
    }
    answer.replicas_left += static_cast<uint64_t>(c.draft.pool_usage(id).replicas());
  }
  return answer;
}

Result<Outcome> handle(const Context& c, const Undrain& command) {
  const Result<std::vector<PoolId>> pools = pools_named(c, command.pool, command.worker);
  if (!pools) return tl::unexpected(pools.error());
  Draining answer{*pools, 0};
  for (const PoolId id : *pools) {
    if (c.draft.find<Pool>(id)->state == PoolState::kDraining)
      change_state(c, id, PoolState::kOpen, EventKind::kPoolUndrained);
    while (const Job* job = find_job(c, JobKind::kDrainPool, id, NamespaceId()))
      c.draft.forget<Job>(job->id);
    answer.replicas_left += static_cast<uint64_t>(c.draft.pool_usage(id).replicas());
  }
  return answer;
}

}  // namespace berth
