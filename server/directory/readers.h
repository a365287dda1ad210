// Shared by queries (over what is installed) and Acquire (over a draft): who reads each shard, and
// what a stored Acquire answers when it is asked again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/text.h"
#include "server/directory/access.h"
#include "server/directory/commands.h"

namespace berth {

template <class World>
Result<Reader> reader_of(const World& world, SessionId id) {
  const Session* session = world.template find<Session>(id);
  if (!session || session->ending)
    return refuse(Reason::kUnknownSession, "no session " + to_text(id));
  if (session->role == Role::kWorker) return Reader{id, ""};
  return Reader{session->worker, session->name};
}

// One reader for every shard, or one for each. Errors: unknown_session, invalid_argument.
template <class World>
Result<std::vector<Reader>> readers_in(const World& world, const Namespace& ns, SessionId client,
                                       std::span<const Target> targets) {
  std::vector<Reader> readers;
  if (client.valid()) {
    Result<Reader> own = reader_of(world, client);
    if (!own) return tl::unexpected(own.error());
    readers.push_back(*own);
  }
  if (targets.empty()) {
    if (readers.empty())
      return refuse(Reason::kInvalidArgument, "name a client_session or one target per shard");
    return readers;
  }
  std::vector<Reader> by_shard(ns.spec.shards, readers.empty() ? Reader{} : readers.front());
  for (const Target& target : targets) {
    if (target.shard >= ns.spec.shards)
      return refuse(Reason::kInvalidArgument,
                    "targets names shard " + std::to_string(target.shard) + "; namespace \"" +
                        ns.spec.name + "\" has " + std::to_string(ns.spec.shards));
    Result<Reader> reader = reader_of(world, target.session);
    if (!reader) return tl::unexpected(reader.error());
    by_shard[target.shard] = *reader;
  }
  for (uint32_t shard = 0; shard < ns.spec.shards; ++shard)
    if (!by_shard[shard].worker.valid())
      return refuse(Reason::kInvalidArgument,
                    "targets names nobody for shard " + std::to_string(shard));
  return by_shard;
}

// Locations come from the lease: what was given back since is not told again.
template <class World>
Acquired acquired_answer(const World& world, const Operation& operation) {
  Acquired answer;
  answer.miss = operation.miss;
  const Lease* lease = world.template find<Lease>(operation.lease);
  if (!lease) return answer;
  answer.lease = lease->id;
  answer.classes = operation.codes;
  for (const ReplicaId id : lease->replicas) {
    const Replica* replica = world.template find<Replica>(id);
    if (!replica) return Acquired{.miss = MissReason::kNotPresent};  // gone with its memory
    answer.replicas.push_back(*replica);
  }
  return answer;
}

}  // namespace berth
