#include "server/directory/queries.h"

#include "common/text.h"
#include "server/directory/lookup.h"
#include "server/directory/readers.h"

namespace berth {

MissReason obstacle(const Replica& replica, const Namespace& ns, const Pool& pool,
                    const Presence* owner, const Reader& reader) {
  if (pool.state == PoolState::kGone) return MissReason::kNotPresent;
  if (!can_reach(pool, reader)) return MissReason::kNotAccessible;
  switch (replica.state) {
    case ReplicaState::kReserved:
      return MissReason::kBeingWritten;
    case ReplicaState::kRetiring:
      return MissReason::kRetiring;
    case ReplicaState::kQuarantined:
      return MissReason::kQuarantined;
    case ReplicaState::kReady:
      break;
  }
  // A job retires it; that takes slices, and nobody waits for them.
  if (pool.state != PoolState::kOpen || replica.id < ns.evicted_below) return MissReason::kRetiring;
  if (!owner || owner->attachment != Attachment::kAttached) return MissReason::kUnverified;
  if (owner->silent) return MissReason::kOwnerSilent;
  return MissReason::kNone;
}

namespace {

// The installed directory as ChunkLookup wants it.
struct Installed {
  const Directory& directory;

  const ReplicaTable& base_replicas() const { return directory.replicas(); }

  template <class R>
  const R* find(KeyOf<R> key) const {
    return directory.find<R>(key);
  }
  template <class Visit>
  void each_replica(const ObjectKey&, uint32_t first_slot, Visit visit) const {
    const ReplicaTable& table = directory.replicas();
    for (uint32_t slot = first_slot; slot != ReplicaTable::kNone;
         slot = table.at(slot).next_same_key)
      if (!visit(table.at(slot).replica)) return;
  }
};

}  // namespace

ProbeAnswer probe(const Directory& directory, const Namespace& ns, std::span<const Digest> digests,
                  const std::vector<Reader>& readers) {
  ProbeAnswer answer;
  answer.classes.reserve(digests.size());
  const Installed world{directory};
  ChunkLookup lookup(world, ns, digests, readers);
  for (size_t i = 0; i < digests.size(); ++i) {
    const ChunkView chunk = lookup.next(nullptr);
    if (chunk.chunk_class == ChunkClass::kMiss) {
      answer.miss = chunk.miss;
      break;
    }
    answer.classes.push_back(static_cast<uint8_t>(chunk.chunk_class));
  }
  return answer;
}

Result<std::vector<Reader>> readers_for(const Directory& directory, const Namespace& ns,
                                        SessionId client, std::span<const Target> targets) {
  return readers_in(directory, ns, client, targets);
}

Resolved resolve(const Directory& directory, SessionId client, OperationNumber number) {
  Resolved resolved;
  const Operation* operation = directory.find<Operation>({client, number});
  if (!operation) {
    const Session* session = directory.find<Session>(client);
    if (session && number <= session->operation_low_water)
      resolved.outcome = Resolved::Outcome::kRefused;
    return resolved;
  }
  resolved.outcome = Resolved::Outcome::kCommitted;
  resolved.kind = operation->kind;
  switch (operation->kind) {
    case OperationKind::kReserve:
      resolved.reserved = reserved_answer(*operation);
      break;
    case OperationKind::kCommit:
      resolved.committed = {operation->codes};
      break;
    case OperationKind::kAcquire:
      resolved.acquired = acquired_answer(directory, *operation);
      break;
  }
  return resolved;
}

}  // namespace berth
