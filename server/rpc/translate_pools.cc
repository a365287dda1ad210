// Pools, and what a re-attaching worker says about their contents.
#include "common/names.h"
#include "server/rpc/fields.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

constexpr uint64_t kPageBytesMin = 4096;
constexpr uint64_t kPageBytesMax = uint64_t{1} << 30;

void check_reach(Fields& fields, const PoolSpec& spec) {
  if (spec.scope != Scope::kProcess && !spec.engine.empty())
    fields.refuse("spec.engine", spec.engine, "is for pools of scope PROCESS only", "empty");
  if (spec.scope != Scope::kDomain && !spec.access_domain.empty())
    fields.refuse("spec.access_domain", spec.access_domain, "is for pools of scope DOMAIN only",
                  "empty");
  if (spec.scope == Scope::kDomain && spec.access_domain.empty())
    fields.refuse("spec.access_domain", "\"\"", "is missing", "the domain's name");
}

void check_sizes(Fields& fields, PoolSpec& spec) {
  fields.number("spec.page_bytes", spec.page_bytes, kPageBytesMin, kPageBytesMax);
  if ((spec.page_bytes & (spec.page_bytes - 1)) != 0)
    fields.refuse("spec.page_bytes", std::to_string(spec.page_bytes), "is not a power of two",
                  "a power of two from 4096 to 1073741824");
  fields.number("spec.capacity_bytes", spec.capacity_bytes, kPageBytesMin, kBytesMax);
  if (fields.failed()) return;
  if (spec.capacity_bytes % spec.page_bytes != 0)
    fields.refuse("spec.capacity_bytes", std::to_string(spec.capacity_bytes),
                  "is not a multiple of page_bytes",
                  "a multiple of " + std::to_string(spec.page_bytes));
  if (spec.budget_bytes == 0) spec.budget_bytes = spec.capacity_bytes;
  fields.number("spec.budget_bytes", spec.budget_bytes, 1, spec.capacity_bytes);
  fields.number("spec.backing_bytes", spec.backing_bytes, spec.capacity_bytes, kBytesMax);
  fields.number("spec.pinned_bytes", spec.pinned_bytes, 0, spec.backing_bytes);
}

LedgerRow ledger_row(Fields& fields, const v1::LedgerChunk& chunk, int i) {
  LedgerRow row;
  row.replica = fields.id<ReplicaId>("replicas", chunk.replicas(i));
  row.shard = static_cast<uint16_t>(fields.number("shards", chunk.shards(i), 0, UINT16_MAX));
  row.part = static_cast<uint16_t>(fields.number("parts", chunk.parts(i), 0, UINT16_MAX));
  row.offset = fields.number("offsets", chunk.offsets(i), 0, kBytesMax);
  row.size_bytes = fields.number("sizes", chunk.sizes(i), 1, kBytesMax);
  row.state = fields.choice("states", chunk.states(i), LedgerState::kQuarantined);
  return row;
}

void read_rows(Fields& fields, const v1::LedgerChunk& chunk, const RequestContext& context,
               ReconcileChunk& command) {
  const auto count = static_cast<size_t>(chunk.replicas_size());
  command.pool = fields.id<PoolId>("pool", chunk.pool());
  command.namespace_fingerprint =
      fields.id128("namespace_fingerprint", chunk.namespace_fingerprint(), Given::kRequired);
  const size_t width =
      fields.number("digest_bytes", chunk.digest_bytes(), kDigestBytesMin, kDigestBytesMax);
  const auto* known = context.directory.namespace_by_fingerprint(command.namespace_fingerprint);
  if (known && known->spec.digest_bytes != width)
    fields.refuse("digest_bytes", std::to_string(width), "is not the namespace's width",
                  std::to_string(known->spec.digest_bytes));
  const auto digests = fields.digests("digests", chunk.digests(), width, kLedgerRowsMax);
  fields.length("digests", digests.size(), count);
  fields.length("shards", static_cast<size_t>(chunk.shards_size()), count);
  fields.length("parts", static_cast<size_t>(chunk.parts_size()), count);
  fields.length("offsets", static_cast<size_t>(chunk.offsets_size()), count);
  fields.length("sizes", static_cast<size_t>(chunk.sizes_size()), count);
  fields.length("states", static_cast<size_t>(chunk.states_size()), count);
  if (fields.failed()) return;
  command.rows.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    command.rows.push_back(ledger_row(fields, chunk, static_cast<int>(i)));
    command.rows.back().digest = digests[i];
  }
}

void read_leases(Fields& fields, const v1::LedgerChunk& chunk, ReconcileChunk& command) {
  fields.item_count("leases", static_cast<size_t>(chunk.leases_size()), kHeldLeasesMax);
  size_t replicas = 0;
  for (const v1::HeldLease& lease : chunk.leases())
    replicas += static_cast<size_t>(lease.replicas_size());
  // Without spans a lease protects nothing, but it is still held.
  if (replicas > 0) fields.item_count("leases.replicas", replicas, kLocationsMax);
  if (fields.failed()) return;
  for (const v1::HeldLease& lease : chunk.leases()) {
    HeldLease held{fields.id<LeaseId>("leases.lease", lease.lease()),
                   fields.id<SessionId>("leases.client_session", lease.client_session()),
                   lease.operation(),
                   {}};
    for (const uint64_t replica : lease.replicas()) held.replicas.emplace_back(replica);
    command.leases.push_back(std::move(held));
  }
}

}  // namespace

Result<RegisterPool> to_command(const v1::RegisterPoolRequest& request,
                                const RequestContext& context) {
  const v1::PoolSpec& wire = request.spec();
  Fields fields;
  PoolSpec spec;
  spec.name = fields.name("spec.name", wire.name(), Given::kRequired, kNameLengthMax);
  spec.medium = fields.choice("spec.medium", wire.medium(), Medium::kSsd);
  spec.tier = fields.choice("spec.tier", wire.tier(), Tier::kL2);
  spec.scope = fields.choice("spec.scope", wire.scope(), Scope::kDomain);
  spec.engine = fields.name("spec.engine", wire.engine(), Given::kOptional, kNameLengthMax);
  spec.access_domain =
      fields.name("spec.access_domain", wire.access_domain(), Given::kOptional, kNameLengthMax);
  spec.capacity_bytes = wire.capacity_bytes();
  spec.page_bytes = wire.page_bytes();
  spec.budget_bytes = wire.budget_bytes();
  spec.backing_bytes = wire.backing_bytes();
  spec.pinned_bytes = wire.pinned_bytes();
  check_reach(fields, spec);
  check_sizes(fields, spec);
  return fields.checked(RegisterPool{context.caller, std::move(spec)});
}

Result<ClosePool> to_command(const v1::ClosePoolRequest& request, const RequestContext& context) {
  Fields fields;
  return fields.checked(ClosePool{context.caller, fields.id<PoolId>("pool", request.pool())});
}

Result<ExportPool> to_command(const v1::ExportPoolRequest& request, const RequestContext& context) {
  Fields fields;
  return fields.checked(ExportPool{
      context.caller, fields.id<PoolId>("pool", request.pool()),
      fields.id<SessionId>("importer", request.importer()),
      fields.name("life_name", request.life_name(), Given::kRequired, kLifeNameLengthMax)});
}

Result<ImportPool> to_command(const v1::ImportPoolRequest& request, const RequestContext& context) {
  Fields fields;
  return fields.checked(ImportPool{
      context.caller, fields.id<PoolId>("pool", request.pool()),
      fields.name("life_name", request.life_name(), Given::kRequired, kLifeNameLengthMax)});
}

Result<EndExports> to_command(const v1::EndExportsRequest& request, const RequestContext& context) {
  Fields fields;
  EndExports command{context.caller, fields.id<PoolId>("pool", request.pool()), {}};
  fields.item_count("life_names", static_cast<size_t>(request.life_names_size()),
                    context.config.importers_max);
  for (const std::string& name : request.life_names())
    command.life_names.push_back(
        fields.name("life_names", name, Given::kRequired, kLifeNameLengthMax));
  return fields.checked(std::move(command));
}

Result<BeginReattach> to_command(const v1::ReattachHello& request, const RequestContext& context) {
  Fields fields;
  BeginReattach command;
  command.session = context.caller.session;
  command.boot_id = fields.id128("boot_id", request.boot_id(), Given::kRequired);
  command.epoch_seen =
      static_cast<Epoch>(fields.number("epoch_seen", request.epoch_seen(), 0, kEpochMax));
  command.store_id_seen = fields.id128("store_id_seen", request.store_id_seen(), Given::kOptional);
  return fields.checked(command);
}

Result<ReconcileChunk> to_command(const v1::LedgerChunk& chunk, bool foreign_store,
                                  const RequestContext& context) {
  Fields fields;
  ReconcileChunk command;
  command.caller = context.caller;
  command.foreign_store = foreign_store;
  if (chunk.replicas_size() == 0 && chunk.leases_size() == 0)
    fields.refuse("replicas", "0 items", "is empty", "rows, leases or both");
  if (static_cast<size_t>(chunk.replicas_size()) > kLedgerRowsMax)
    fields.item_count("replicas", static_cast<size_t>(chunk.replicas_size()), kLedgerRowsMax);
  if (chunk.replicas_size() > 0) read_rows(fields, chunk, context, command);
  if (chunk.leases_size() > 0) read_leases(fields, chunk, command);
  return fields.checked(std::move(command));
}

Result<EndReattach> to_command(const v1::ReattachEnd& request, const RequestContext& context) {
  Fields fields;
  EndReattach command{context.caller, {}};
  if (request.clients_size() > 0)
    command.clients =
        fields.ids<SessionId>("clients", request.clients(), context.config.sessions_max);
  return fields.checked(std::move(command));
}

v1::PoolSpec to_wire(const PoolSpec& spec) {
  v1::PoolSpec wire;
  wire.set_name(spec.name);
  wire.set_medium(static_cast<v1::Medium>(spec.medium));
  wire.set_tier(static_cast<v1::Tier>(spec.tier));
  wire.set_scope(static_cast<v1::Scope>(spec.scope));
  wire.set_engine(spec.engine);
  wire.set_access_domain(spec.access_domain);
  wire.set_capacity_bytes(spec.capacity_bytes);
  wire.set_page_bytes(spec.page_bytes);
  wire.set_budget_bytes(spec.budget_bytes);
  wire.set_backing_bytes(spec.backing_bytes);
  wire.set_pinned_bytes(spec.pinned_bytes);
  return wire;
}

void fill(v1::RegisterPoolResponse* response, const PoolRegistered& registered) {
  response->set_pool(registered.pool.value());
}

void fill(v1::ClosePoolResponse* response, const PoolClosing& closing) {
  response->set_replicas_left(closing.replicas_left);
}

void fill(v1::LedgerVerdicts* response, const ChunkReconciled& reconciled) {
  for (const LedgerVerdict verdict : reconciled.verdicts)
    response->add_verdicts(static_cast<v1::LedgerVerdict>(verdict));
}

}  // namespace berth::rpc
