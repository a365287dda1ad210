// Handlers of leases. Acquire checks READY, reach and liveness and protects, in one step; only
// release or proof ends it.
#include "common/text.h"
#include "server/directory/context.h"
#include "server/directory/lookup.h"
#include "server/directory/readers.h"

namespace berth {
namespace {

Result<> check_shape(const Context& c, const Acquire& command) {
  if (command.digests.empty())
    return refuse(Reason::kInvalidArgument,
                  "digests is empty: an acquire names at least one chunk");
  if (command.digests.size() > c.config.batch_items_max)
    return refuse(Reason::kInvalidArgument, "digests holds " +
                                                std::to_string(command.digests.size()) +
                                                " chunks; limits.batch_items_max is " +
                                                std::to_string(c.config.batch_items_max));
  if (command.ttl > c.config.lease_ttl_max || command.ttl < Duration{})
    return refuse(Reason::kInvalidArgument, "ttl_ms = " + std::to_string(command.ttl.millis) +
                                                "; accepted: up to " +
                                                std::to_string(c.config.lease_ttl_max.millis));
  if (c.draft.session_usage(command.id.client).leases >= c.config.leases_max)
    return refuse(Reason::kLimitReached,
                  "session " + to_text(command.id.client) + " holds limits.leases_max = " +
                      std::to_string(c.config.leases_max) + " leases; release some");
  return {};
}

}  // namespace

Result<Outcome> handle(const Context& c, const Acquire& command) {
  const Result<const Session*> client = require_client(c, command.id.caller, command.id.client);
  if (!client) return tl::unexpected(client.error());
  const Result<const Operation*> known = find_operation(c, command.id, OperationKind::kAcquire);
  if (!known) return tl::unexpected(known.error());
  if (*known) return acquired_answer(c.draft, **known);
  const Namespace* ns = c.draft.find<Namespace>(command.namespace_id);
  if (!ns)
    return refuse(Reason::kUnknownNamespace,
                  "no namespace " + std::to_string(command.namespace_id.value()));
  if (Result<> shape = check_shape(c, command); !shape) return tl::unexpected(shape.error());
  const Result<std::vector<Reader>> readers =
      readers_in(c.draft, *ns, command.id.client, command.targets);
  if (!readers) return tl::unexpected(readers.error());

  Acquired answer;
  answer.classes.reserve(command.digests.size());
  std::vector<const Replica*> found;
  found.reserve(command.digests.size());
  ChunkLookup lookup(c.draft, *ns, command.digests, *readers);
  for (size_t i = 0; i < command.digests.size(); ++i) {
    const ChunkView chunk = lookup.next(&found);
    if (chunk.chunk_class == ChunkClass::kMiss) {
      answer.miss = chunk.miss;
      break;
    }
    answer.classes.push_back(static_cast<uint8_t>(chunk.chunk_class));
  }
  Operation operation = new_operation(command.id, OperationKind::kAcquire);
  operation.codes = answer.classes;
  operation.miss = answer.miss;
  if (!found.empty()) {
    Lease lease;
    lease.id = operation.lease = answer.lease = c.draft.take_id<LeaseId>();
    lease.session = command.id.client;
    lease.operation = command.id.operation;
    lease.taken = c.now;
    lease.ttl = command.ttl.millis ? command.ttl : c.config.lease_ttl_default;
    lease.expires = c.now + lease.ttl;
    answer.replicas.reserve(found.size());
    lease.replicas.reserve(found.size());
    for (const Replica* replica : found) {
      answer.replicas.push_back(*replica);
      lease.replicas.push_back(replica->id);
    }
    c.draft.emit({.kind = EventKind::kLeaseTaken,
                  .session = lease.session,
                  .count = lease.replicas.size(),
                  .lease = lease.id});
    c.draft.put(std::move(lease));
  }
  c.draft.put(std::move(operation));
  return answer;
}

Result<Outcome> handle(const Context& c, const Renew& command) {
  const Result<const Session*> client = require_client(c, command.caller, command.client);
  if (!client) return tl::unexpected(client.error());
  if (command.ttl > c.config.lease_ttl_max || command.ttl < Duration{})
    return refuse(Reason::kInvalidArgument, "ttl_ms = " + std::to_string(command.ttl.millis) +
                                                "; accepted: up to " +
                                                std::to_string(c.config.lease_ttl_max.millis));
  PerItem answer;
  for (const LeaseId id : command.leases) {
    const Lease* lease = c.draft.find<Lease>(id);
    // A lease that is being revoked is not revived: its holder was told to stop.
    const bool renews = lease && lease->session == command.client && !lease->revoking;
    answer.done.push_back(renews);
    if (!renews) continue;
    Lease renewed = *lease;
    if (command.ttl.millis) renewed.ttl = command.ttl;
    renewed.expires = c.now + renewed.ttl;
    c.draft.put(std::move(renewed));
  }
  return answer;
}

Result<Outcome> handle(const Context& c, const Release& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Session* client = c.draft.find<Session>(command.client);
  if (client && client->worker != command.caller.session)
    return refuse(Reason::kPermissionDenied, "client session " + to_text(command.client) +
                                                 " is not attached through this worker");
  PerItem answer;
  for (const LeaseId id : command.leases) {
    const Lease* lease = c.draft.find<Lease>(id);
    const bool releases = lease && lease->session == command.client;
    answer.done.push_back(releases);
    if (releases) end_lease(c, *lease, "released");
  }
  return answer;
}

}  // namespace berth
