// Handlers of replicas after the grant: commit, abort, retire, and the owner's word that pages are
// free.
#include <map>
#include <set>
#include <utility>

#include "common/text.h"
#include "server/directory/context.h"

namespace berth {
namespace {

// Items of several reservations, so that each range record is rewritten once.
using Closing = std::map<ReplicaId, std::vector<ReplicaId>>;
void close_all(const Context& c, const Closing& closing) {
  for (const auto& [first, replicas] : closing)
    if (const Reservation* reservation = c.draft.find<Reservation>(first))
      close_items(c, *reservation, replicas);
}

// One Commit while it is being decided. Its replicas mostly are the items of one reservation, in
// its order: what is known of the last one is kept for the next, and they are written together.
class Committing {
 public:
  Committing(const Context& c, const Commit& command)
      : c_(c), command_(command), found_(command.replicas.size()) {
    c.draft.base_replicas().slots_of(command.replicas, found_);
    ready_.reserve(found_.size());
    slots_.reserve(found_.size());
  }

  Result<CommitCode> decide(size_t i) {
    const ReplicaId id = command_.replicas[i];
    const uint64_t offset = command_.offsets[i];
    if (!ready_.empty() && id <= ready_.back().id) write();  // out of order, or named again
    const uint32_t slot = found_[i];
    const Replica* replica = c_.draft.find_replica(id, slot);
    if (!replica) return CommitCode::kUnknown;
    if (!is_open(*replica))
      return replica->state == ReplicaState::kReady && replica->offset == offset
                 ? CommitCode::kCommitted
                 : CommitCode::kClosed;
    if (!pool_ || pool_->id != replica->pool) pool_ = c_.draft.find<Pool>(replica->pool);
    if (!namespace_ || namespace_->id != replica->key.namespace_id())
      namespace_ = c_.draft.find<Namespace>(replica->key.namespace_id());
    if (!fits(*replica, offset))
      return refuse(Reason::kInvalidArgument, "offset " + std::to_string(offset) + " of replica " +
                                                  to_text(id) +
                                                  " is not page-aligned or lies outside its pool");
    closing_->push_back(id);
    ++committed_;
    become_ready(*replica, slot, offset);
    return CommitCode::kCommitted;
  }

  // Returns how many replicas became READY.
  uint64_t finish() {
    write();
    close_all(c_, closings_);
    return committed_;
  }

 private:
  // Whether this client's reservation of it is open, so that a commit may land.
  bool is_open(const Replica& replica) {
    if (replica.state != ReplicaState::kReserved || !replica.in_reservation) return false;
    if (!reservation_ || !reservation_->covers(replica.id)) {
      reservation_ = reservation_of(c_, replica.id);
      if (!reservation_) return false;
      is_mine_ = reservation_->session == command_.id.client;
      if (is_mine_) closing_ = &closings_[reservation_->first];
    }
    return is_mine_;
  }

  bool fits(const Replica& replica, uint64_t offset) const {
    const PoolSpec& spec = pool_->spec;
    return offset % spec.page_bytes == 0 && offset <= spec.capacity_bytes &&
           pool_->pages_bytes(replica.size_bytes) <= spec.capacity_bytes - offset;
  }

  void become_ready(const Replica& replica, uint32_t slot, uint64_t offset) {
    Replica ready = moved(c_, replica, ReplicaState::kReady, Why::kNone);
    ready.offset = offset;
    // A pool that drains takes what was granted before, and retires it with the rest.
    if (const Why why = leaves_at_once(*pool_, *namespace_, ready); why != Why::kNone) {
      c_.draft.put(ready);
      retire(c_, ready, why);
    } else if (slot == ReplicaTable::kNone) {
      c_.draft.put(ready);  // reserved in this very batch
    } else {
      ready_.push_back(ready);
      slots_.push_back(slot);
    }
  }

  void write() { c_.draft.put_together(std::exchange(ready_, {}), std::exchange(slots_, {})); }

  const Context& c_;
  const Commit& command_;
  std::vector<uint32_t> found_;  // slots of what it names
  const Reservation* reservation_ = nullptr;
  bool is_mine_ = false;
  std::vector<ReplicaId>* closing_ = nullptr;
  const Pool* pool_ = nullptr;
  const Namespace* namespace_ = nullptr;
  Closing closings_;
  uint64_t committed_ = 0;
  std::vector<Replica> ready_;
  std::vector<uint32_t> slots_;
};

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
  operation.codes.reserve(command.replicas.size());
  Committing committing(c, command);
  for (size_t i = 0; i < command.replicas.size(); ++i) {
    const Result<CommitCode> code = committing.decide(i);
    if (!code) return tl::unexpected(code.error());
    operation.codes.push_back(static_cast<uint8_t>(*code));
  }
  if (const uint64_t committed = committing.finish(); committed > 0)
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
  std::set<ReplicaId> named;  // twice counts once: they are closed after all were looked at
  for (const ReplicaId id : command.replicas) {
    const Replica* replica = c.draft.find<Replica>(id);
    const Reservation* reservation =
        replica && replica->in_reservation ? reservation_of(c, id) : nullptr;
    if (!reservation || reservation->session != command.client || !named.insert(id).second) {
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
  std::set<PoolId> pools;
  for (const ReplicaId id : freed) pools.insert(c.draft.find<Replica>(id)->pool);
  c.draft.forget_together(freed);
  for (const PoolId pool : pools) forget_pool_if_over(c, pool);
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
  std::vector<ReplicaId> gone;
  std::set<ReplicaId> named;  // twice counts once: they go after all were looked at
  const Pool* pool = nullptr;
  std::vector<uint32_t> slots(command.replicas.size());
  c.draft.base_replicas().slots_of(command.replicas, slots);
  for (size_t i = 0; i < slots.size(); ++i) {
    const ReplicaId id = command.replicas[i];
    const uint32_t slot = slots[i];
    const Replica* replica = c.draft.find_replica(id, slot);
    if (replica && (!pool || pool->id != replica->pool)) pool = c.draft.find<Pool>(replica->pool);
    const bool is_freed = replica && replica->state == ReplicaState::kRetiring &&
                          c.draft.lease_count(id, slot) == 0 &&
                          pool->owner == command.caller.session && named.insert(id).second;
    answer.done.push_back(is_freed);
    if (!is_freed) continue;
    ++freed[replica->pool];
    gone.push_back(id);
  }
  c.draft.forget_together(std::move(gone));
  for (const auto& [id, count] : freed) {
    c.draft.emit(
        {.kind = EventKind::kFreed, .session = command.caller.session, .pool = id, .count = count});
    forget_pool_if_over(c, id);
  }
  return answer;
}

}  // namespace berth
