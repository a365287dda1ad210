// Handlers of replicas after the grant: commit, abort, retire, and the owner's word that pages are
// free.
#include <map>

#include "common/text.h"
#include "server/directory/context.h"

namespace berth {
namespace {

// Whether this client's reservation of the replica is open, so that a commit may land.
bool is_open_for(const Context& c, const Replica& replica, SessionId client) {
  if (replica.state != ReplicaState::kReserved || !replica.in_reservation) return false;
  const Reservation* reservation = reservation_of(c, replica.id);
  return reservation && reservation->session == client;
}

bool fits(const Pool& pool, const Replica& replica, uint64_t offset) {
  return offset % pool.spec.page_bytes == 0 && offset <= pool.spec.capacity_bytes &&
         pool.pages_bytes(replica.size_bytes) <= pool.spec.capacity_bytes - offset;
}

// Items of several reservations, so that each range record is rewritten once.
using Closing = std::map<ReplicaId, std::vector<ReplicaId>>;
void close_all(const Context& c, const Closing& closing) {
  for (const auto& [first, replicas] : closing)
    if (const Reservation* reservation = c.draft.find<Reservation>(first))
      close_items(c, *reservation, replicas);
}

}  // namespace

Result<Outcome> handle(const Context& c, const Commit& command) {
  const Result<const Session*> client = require_client(c, command.id.caller, command.id.client);
  if (!client) return tl::unexpected(client.error());
  const Result<const Operation*> known = find_operation(c, command.id, OperationKind::kCommit);
  if (!known) return tl::unexpected(known.error());
  if (*known) return Committed{(*known)->codes};
  if (Result<> count = check_count(c, "replicas", command.replicas.size()); !count)
    return tl::unexpected(count.error());
  if (command.replicas.size() != command.offsets.size())
    return refuse(Reason::kInvalidArgument,
                  "offsets has " + std::to_string(command.offsets.size()) +
                      " elements, replicas has " + std::to_string(command.replicas.size()));

  Operation operation = new_operation(command.id, OperationKind::kCommit);
  Closing closing;
  uint64_t committed = 0;
  for (size_t i = 0; i < command.replicas.size(); ++i) {
    const Replica* replica = c.draft.find<Replica>(command.replicas[i]);
    CommitCode code = CommitCode::kUnknown;
    if (replica && is_open_for(c, *replica, command.id.client)) {
      if (!fits(*c.draft.find<Pool>(replica->pool), *replica, command.offsets[i]))
        return refuse(Reason::kInvalidArgument,
                      "offset " + std::to_string(command.offsets[i]) + " of replica " +
                          to_text(replica->id) + " is not page-aligned or lies outside its pool");
      closing[reservation_of(c, replica->id)->first].push_back(replica->id);
      Replica ready = *replica;
      ready.offset = command.offsets[i];
      move_to(c, ready, ReplicaState::kReady, Why::kNone);
      // A pool that drains takes what was granted before, and retires it with the rest.
      if (const Why why = leaves_at_once(c, ready); why != Why::kNone) retire(c, ready, why);
      code = CommitCode::kCommitted;
      ++committed;
    } else if (replica && replica->state == ReplicaState::kReady &&
               replica->offset == command.offsets[i]) {
      code = CommitCode::kCommitted;
    } else if (replica) {
      code = CommitCode::kClosed;
    }
    operation.codes.push_back(static_cast<uint8_t>(code));
  }
  close_all(c, closing);
  if (committed > 0)
    c.draft.emit({.kind = EventKind::kReady,
                  .session = command.id.client,
                  .replica = command.replicas.front(),
                  .count = committed});
  const Committed answer{operation.codes};
  c.draft.put(std::move(operation));
  return answer;
}

// The writer no longer touches these. In its own worker's pools that word comes from the owner
// itself, so the pages are free; in somebody else's pool the owner is asked first.
Result<Outcome> handle(const Context& c, const Abort& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  if (Result<> count = check_count(c, "replicas", command.replicas.size()); !count)
    return tl::unexpected(count.error());
  PerItem answer;
  Closing closing;
  std::vector<ReplicaId> freed;
  for (const ReplicaId id : command.replicas) {
    const Replica* replica = c.draft.find<Replica>(id);
    const Reservation* reservation =
        replica && replica->in_reservation ? reservation_of(c, id) : nullptr;
    if (!reservation || reservation->session != command.client) {
      answer.done.push_back(0);
      continue;
    }
    const Session* client = c.draft.find<Session>(command.client);
    if (!client || client->worker != command.caller.session)
      return refuse(Reason::kPermissionDenied, "client session " + to_text(command.client) +
                                                   " is not attached through this worker");
    closing[reservation->first].push_back(id);
    if (c.draft.find<Pool>(replica->pool)->owner == command.caller.session)
      freed.push_back(id);
    else
      retire(c, *replica, Why::kWriterAborted);
    answer.done.push_back(1);
  }
  close_all(c, closing);
  for (const ReplicaId id : freed) {
    const PoolId pool = c.draft.find<Replica>(id)->pool;
    c.draft.forget<Replica>(id);
    forget_pool_if_over(c, pool);
  }
  if (!freed.empty())
    c.draft.emit({.kind = EventKind::kAborted,
                  .session = command.client,
                  .replica = freed.front(),
                  .count = freed.size()});
  return answer;
}

// Idempotent by what it names. Only the owner of the pool can say it, and never under a lease.
Result<Outcome> handle(const Context& c, const ReclaimAck& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  if (Result<> count = check_count(c, "replicas", command.replicas.size()); !count)
    return tl::unexpected(count.error());
  PerItem answer;
  std::map<PoolId, uint64_t> freed;
  for (const ReplicaId id : command.replicas) {
    const Replica* replica = c.draft.find<Replica>(id);
    const bool is_freed = replica && replica->state == ReplicaState::kRetiring &&
                          c.draft.lease_count(id) == 0 &&
                          c.draft.find<Pool>(replica->pool)->owner == command.caller.session;
    answer.done.push_back(is_freed);
    if (!is_freed) continue;
    ++freed[replica->pool];
    c.draft.forget<Replica>(id);
  }
  for (const auto& [pool, count] : freed) {
    c.draft.emit({.kind = EventKind::kFreed,
                  .session = command.caller.session,
                  .pool = pool,
                  .count = count});
    forget_pool_if_over(c, pool);
  }
  return answer;
}

}  // namespace berth
