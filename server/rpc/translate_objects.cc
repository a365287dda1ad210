// Stores and reads: Reserve, Commit, Abort, Probe, Acquire and what follows them.
#include "server/rpc/canonical_bytes.h"
#include "server/rpc/fields.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

template <class Request>
Numbered numbered(Fields& fields, const Request& request, const RequestContext& context,
                  const CanonicalBytes& content) {
  return {context.caller, fields.id<SessionId>("client_session", request.client_session()),
          fields.number("operation", request.operation(), 1, kAnyNumber), content.hash64()};
}

Result<const Namespace*> find_namespace(uint64_t id, const RequestContext& context) {
  if (id == 0)
    return refuse(Reason::kInvalidArgument,
                  "namespace_id = 0: is missing; accepted: an id from OpenNamespace");
  if (const auto* found = context.directory.find<Namespace>(NamespaceId(id))) return found;
  return refuse(Reason::kUnknownNamespace,
                "namespace_id = " + std::to_string(id) + ": no such namespace; open it first");
}

std::vector<ObjectKey> keys_of(Fields& fields, const v1::ReserveRequest& request,
                               const Namespace& ns, size_t items_max) {
  const size_t width = ns.spec.digest_bytes;
  const size_t count = fields.digest_count("digests", request.digests(), width, items_max);
  const auto shards = fields.numbers("shards", request.shards(), count, ns.spec.shards);
  const auto parts = fields.numbers("parts", request.parts(), count, ns.spec.parts);
  std::vector<ObjectKey> keys;
  if (fields.failed()) return keys;
  keys.reserve(count);
  for (size_t i = 0; i < count; ++i)
    keys.push_back(key_of(ns, digest_at(request.digests(), width, i), shards[i], parts[i]));
  return keys;
}

std::vector<uint64_t> sizes_of(Fields& fields, const v1::ReserveRequest& request, size_t count,
                               uint64_t size_max) {
  const auto given = static_cast<size_t>(request.sizes_size());
  if (given != 1 && given != count)
    fields.refuse("sizes", std::to_string(given) + " elements", "has the wrong length",
                  "1 or " + std::to_string(count) + " elements");
  fields.range("sizes", request.sizes(), 1, size_max);
  return {request.sizes().begin(), request.sizes().end()};
}

std::vector<Target> targets_of(Fields& fields,
                               const google::protobuf::RepeatedPtrField<v1::Target>& targets,
                               const Namespace& ns) {
  const auto count = static_cast<size_t>(targets.size());
  std::vector<Target> result;
  if (count > ns.spec.shards) fields.item_count("targets", count, ns.spec.shards);
  if (fields.failed()) return result;
  std::vector<bool> named(ns.spec.shards);
  for (const v1::Target& target : targets) {
    const auto shard = static_cast<uint16_t>(
        fields.number("targets.shard", target.shard(), 0, ns.spec.shards - 1));
    if (named[shard])
      fields.refuse("targets.shard", std::to_string(shard), "is named twice", "one target a shard");
    named[shard] = true;
    result.push_back({shard, fields.id<SessionId>("targets.session", target.session())});
  }
  return result;
}

std::vector<Digest> chain_of(Fields& fields, const std::string& bytes, const Namespace& ns,
                             const RequestContext& context) {
  const auto digests =
      fields.digests("digests", bytes, ns.spec.digest_bytes, context.config.batch_items_max);
  const size_t locations = digests.size() * ns.spec.shards * ns.spec.parts;
  if (locations > kLocationsMax)
    fields.refuse(
        "digests", std::to_string(digests.size()) + " chunks",
        "makes too many locations with this namespace's shards and parts",
        "at most " + std::to_string(kLocationsMax / (ns.spec.shards * ns.spec.parts)) + " chunks");
  return digests;
}

CanonicalBytes& add_targets(CanonicalBytes& bytes,
                            const google::protobuf::RepeatedPtrField<v1::Target>& targets) {
  bytes.add(static_cast<uint64_t>(targets.size()));
  for (const v1::Target& target : targets) bytes.add(target.shard()).add(target.session());
  return bytes;
}

void set_column(std::string* column, const std::vector<uint8_t>& values) {
  column->assign(reinterpret_cast<const char*>(values.data()), values.size());
}

// The client must be the caller's; without a caller (a scheduler that only probes) any may be
// named.
Result<> check_client(SessionId client, const RequestContext& context) {
  if (!client.valid() || !context.caller.session.valid()) return {};
  const auto* session = context.directory.find<Session>(client);
  if (!session)
    return refuse(Reason::kUnknownSession,
                  "client_session = " + std::to_string(client.value()) + ": no such session");
  if (session->worker == context.caller.session || client == context.caller.session) return {};
  return refuse(Reason::kPermissionDenied, "client_session = " + std::to_string(client.value()) +
                                               ": attached through another worker");
}

}  // namespace

Result<Reserve> to_command(const v1::ReserveRequest& request, const RequestContext& context) {
  const auto ns = find_namespace(request.namespace_id(), context);
  if (!ns) return tl::unexpected(ns.error());
  CanonicalBytes content("reserve");
  content.add(request.namespace_id()).add(request.digests()).add(request.shards());
  content.add(request.parts()).add(request.sizes()).add(request.write_deadline_ms());
  Fields fields;
  Reserve command;
  command.id = numbered(fields, request, context, content);
  command.namespace_id = (*ns)->id;
  command.keys = keys_of(fields, request, **ns, context.config.batch_items_max);
  command.sizes = sizes_of(fields, request, command.keys.size(), context.config.object_bytes_max);
  command.write_within = fields.duration("write_deadline_ms", request.write_deadline_ms(),
                                         context.config.write_within_max);
  return fields.checked(std::move(command));
}

Result<Commit> to_command(const v1::CommitRequest& request, const RequestContext& context) {
  CanonicalBytes content("commit");
  content.add(request.replicas()).add(request.offsets());
  Fields fields;
  Commit command;
  command.id = numbered(fields, request, context, content);
  command.replicas =
      fields.ids<ReplicaId>("replicas", request.replicas(), context.config.batch_items_max);
  fields.length("offsets", static_cast<size_t>(request.offsets_size()), command.replicas.size());
  fields.range("offsets", request.offsets(), 0, kBytesMax);
  command.offsets.assign(request.offsets().begin(), request.offsets().end());
  if (request.positions_size() > 0)
    fields.length("positions", static_cast<size_t>(request.positions_size()),
                  command.replicas.size());
  command.positions.assign(request.positions().begin(), request.positions().end());
  command.ends_chain = request.ends_chain();
  return fields.checked(std::move(command));
}

Result<Abort> to_command(const v1::AbortRequest& request, const RequestContext& context) {
  Fields fields;
  Abort command{
      context.caller, fields.id<SessionId>("client_session", request.client_session()),
      fields.ids<ReplicaId>("replicas", request.replicas(), context.config.batch_items_max)};
  return fields.checked(std::move(command));
}

Result<ReclaimAck> to_command(const v1::ReclaimAck& request, const RequestContext& context) {
  Fields fields;
  ReclaimAck command{context.caller, fields.ids<ReplicaId>("replicas", request.replicas(),
                                                           context.config.batch_items_max)};
  return fields.checked(std::move(command));
}

Result<Acquire> to_command(const v1::AcquireRequest& request, const RequestContext& context) {
  const auto ns = find_namespace(request.namespace_id(), context);
  if (!ns) return tl::unexpected(ns.error());
  CanonicalBytes content("acquire");
  content.add(request.namespace_id()).add(request.digests()).add(request.ttl_ms());
  add_targets(content, request.targets());
  Fields fields;
  Acquire command;
  command.id = numbered(fields, request, context, content);
  command.namespace_id = (*ns)->id;
  command.digests = chain_of(fields, request.digests(), **ns, context);
  command.targets = targets_of(fields, request.targets(), **ns);
  command.ttl = fields.duration("ttl_ms", request.ttl_ms(), context.config.lease_ttl_max);
  return fields.checked(std::move(command));
}

Result<Renew> to_command(const v1::RenewRequest& request, const RequestContext& context) {
  Fields fields;
  Renew command{context.caller, fields.id<SessionId>("client_session", request.client_session()),
                fields.ids<LeaseId>("leases", request.leases(), context.config.batch_items_max),
                fields.duration("ttl_ms", request.ttl_ms(), context.config.lease_ttl_max)};
  return fields.checked(std::move(command));
}

Result<Release> to_command(const v1::ReleaseRequest& request, const RequestContext& context) {
  Fields fields;
  Release command{context.caller, fields.id<SessionId>("client_session", request.client_session()),
                  fields.ids<LeaseId>("leases", request.leases(), context.config.batch_items_max)};
  return fields.checked(std::move(command));
}

Result<> answer(const v1::ProbeRequest& request, bool store_degraded, const RequestContext& context,
                v1::ProbeResponse* response) {
  const auto ns = find_namespace(request.namespace_id(), context);
  if (!ns) return tl::unexpected(ns.error());
  Fields fields;
  const auto digests = chain_of(fields, request.digests(), **ns, context);
  const auto targets = targets_of(fields, request.targets(), **ns);
  if (fields.failed()) return fields.checked(0).map([](int) {});
  // An engine that cannot acquire must recompute, not loop.
  if (store_degraded) {
    response->set_miss_reason(v1::MISS_REASON_STORE_DEGRADED);
    return {};
  }
  const SessionId client(request.client_session());
  if (auto mine = check_client(client, context); !mine) return mine;
  const auto readers = readers_for(context.directory, **ns, client, targets);
  if (!readers) return tl::unexpected(readers.error());
  const ProbeAnswer found = probe(context.directory, **ns, digests, *readers);
  response->set_usable_chunks(static_cast<uint32_t>(found.classes.size()));
  set_column(response->mutable_classes(), found.classes);
  response->set_miss_reason(static_cast<v1::MissReason>(found.miss));
  return {};
}

Result<> answer(const v1::ResolveRequest& request, const RequestContext& context,
                v1::ResolveResponse* response) {
  Fields fields;
  const auto client = fields.id<SessionId>("client_session", request.client_session());
  const auto operation = fields.number("operation", request.operation(), 1, kAnyNumber);
  if (fields.failed()) return fields.checked(0).map([](int) {});
  if (auto mine = check_client(client, context); !mine) return mine;
  const Resolved resolved = resolve(context.directory, client, operation);
  response->set_outcome(static_cast<v1::ResolveResponse::Outcome>(resolved.outcome));
  if (resolved.outcome != Resolved::Outcome::kCommitted) return {};
  switch (resolved.kind) {
    case OperationKind::kReserve:
      fill(response->mutable_reserve(), resolved.reserved);
      break;
    case OperationKind::kCommit:
      fill(response->mutable_commit(), resolved.committed);
      break;
    case OperationKind::kAcquire:
      fill(response->mutable_acquire(), resolved.acquired);
      break;
  }
  return {};
}

void fill(v1::ReserveResponse* response, const Reserved& reserved) {
  set_column(response->mutable_codes(), reserved.codes);
  response->set_first_replica(reserved.first.value());
  response->mutable_pools()->Reserve(static_cast<int>(reserved.pools.size()));
  for (const PoolId pool : reserved.pools) response->add_pools(pool.value());
}

void fill(v1::CommitResponse* response, const Committed& committed) {
  set_column(response->mutable_codes(), committed.codes);
}

void fill(v1::AbortResponse* response, const PerItem& items) {
  set_column(response->mutable_freed(), items.done);
}

void fill(v1::RenewResponse* response, const PerItem& items) {
  set_column(response->mutable_renewed(), items.done);
}

void fill(v1::ReleaseResponse* response, const PerItem& items) {
  set_column(response->mutable_released(), items.done);
}

void fill(v1::AcquireResponse* response, const Acquired& acquired) {
  const auto count = static_cast<int>(acquired.replicas.size());
  response->set_lease(acquired.lease.value());
  response->set_chunks(static_cast<uint32_t>(acquired.classes.size()));
  set_column(response->mutable_classes(), acquired.classes);
  auto& replicas = *response->mutable_replicas();
  auto& pools = *response->mutable_pools();
  auto& offsets = *response->mutable_offsets();
  auto& sizes = *response->mutable_sizes();
  for (auto* column : {&replicas, &pools, &offsets, &sizes}) column->Resize(count, 0);
  for (int i = 0; i < count; ++i) {
    const Replica& replica = acquired.replicas[static_cast<size_t>(i)];
    replicas[i] = replica.id.value();
    pools[i] = replica.pool.value();
    offsets[i] = replica.offset;
    sizes[i] = replica.size_bytes;
  }
  response->set_miss_reason(static_cast<v1::MissReason>(acquired.miss));
}

}  // namespace berth::rpc
