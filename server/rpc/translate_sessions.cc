// Sessions, Links and their ends.
#include <utility>

#include "common/names.h"
#include "server/rpc/fields.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

// Names of optional parts of the protocol that this server speaks.
constexpr const char* kFeatures[] = {"link_ops"};

std::vector<std::string> names_field(Fields& fields, const char* field,
                                     const google::protobuf::RepeatedPtrField<std::string>& names,
                                     size_t count_max) {
  const auto count = static_cast<size_t>(names.size());
  if (count > count_max)
    fields.refuse(field, std::to_string(count) + " names", "is past its bound",
                  "at most " + std::to_string(count_max));
  for (const std::string& name : names) fields.name(field, name, Given::kRequired, kNameLengthMax);
  return {names.begin(), names.end()};
}

Result<Command> open_worker(const v1::OpenSessionRequest& request, const RequestContext& context,
                            uint32_t version) {
  Fields fields;
  OpenWorker command;
  command.request_token = fields.id128("request_token", request.request_token(), Given::kRequired);
  command.token = context.fresh_token;
  command.name =
      fields.name("worker_name", request.worker_name(), Given::kRequired, kNameLengthMax);
  command.node = fields.name("node", request.node(), Given::kRequired, kNameLengthMax);
  command.boot_id = fields.id128("boot_id", request.boot_id(), Given::kRequired);
  command.life_lock_held = request.life_lock_held();
  command.epoch_seen =
      static_cast<Epoch>(fields.number("epoch_seen", request.epoch_seen(), 0, kEpochMax));
  command.store_id_seen = fields.id128("store_id_seen", request.store_id_seen(), Given::kOptional);
  command.host_memory_bytes =
      fields.number("host_memory_bytes", request.host_memory_bytes(), 0, kBytesMax);
  command.access_domains =
      names_field(fields, "access_domains", request.access_domains(), kAccessDomainsMax);
  command.write_order = names_field(fields, "write_order", request.write_order(), kWriteOrderMax);
  command.version = version;
  command.proven_at = SessionId(request.proven_at());
  return fields.checked(Command(std::move(command)));
}

Result<Command> open_client(const v1::OpenSessionRequest& request, const RequestContext& context,
                            uint32_t version) {
  Fields fields;
  OpenClient command;
  command.caller = context.caller;
  command.request_token = fields.id128("request_token", request.request_token(), Given::kRequired);
  command.token = context.fresh_token;
  command.engine_id =
      fields.name("engine_id", request.engine_id(), Given::kRequired, kNameLengthMax);
  command.life_name =
      fields.name("life_name", request.life_name(), Given::kRequired, kLifeNameLengthMax);
  command.resume_session = SessionId(request.resume_session());
  command.resume_token =
      fields.id128("resume_token", request.resume_token(),
                   command.resume_session.valid() ? Given::kRequired : Given::kOptional);
  if (command.resume_token.valid() && !command.resume_session.valid())
    fields.refuse("resume_session", "0", "is missing", "the session that resume_token belongs to");
  command.version = version;
  return fields.checked(Command(std::move(command)));
}

void add_clients(google::protobuf::RepeatedPtrField<v1::ClientInfo>* out,
                 const std::vector<ClientLeft>& clients) {
  for (const ClientLeft& client : clients) {
    v1::ClientInfo& info = *out->Add();
    info.set_session(client.session.value());
    info.set_engine_id(client.engine_id);
    info.set_life_name(client.life_name);
  }
}

uint32_t millis(Duration duration) { return static_cast<uint32_t>(duration.millis); }

// What the server's configuration asks of a worker: told when its session opens and at every
// re-attach, because the server may come back with another configuration.
template <class Welcome>
void fill_terms(Welcome* welcome, const DirectoryConfig& config) {
  welcome->set_heartbeat_interval_ms(millis(config.heartbeat_interval));
  welcome->set_heartbeat_deadline_ms(millis(config.heartbeat_deadline));
  v1::Limits& limits = *welcome->mutable_limits();
  limits.set_batch_items_max(config.batch_items_max);
  limits.set_operations_max(config.operations_max);
  limits.set_object_bytes_max(config.object_bytes_max);
  limits.set_reservations_max(config.reservations_max);
  limits.set_leases_max(config.leases_max);
  limits.set_write_deadline_max_ms(millis(config.write_within_max));
  limits.set_lease_ttl_max_ms(millis(config.lease_ttl_max));
}

// The session may be gone again already; then its holder hears that at its next step.
void fill_common(v1::OpenSessionResponse* response, SessionId session, const Token& token,
                 uint32_t version, const RequestContext& context) {
  response->set_version(version);
  for (const char* feature : kFeatures) response->add_features(feature);
  fill(response->mutable_store(), context.directory);
  response->set_session(session.value());
  response->set_token(bytes_of(token));
  fill_terms(response, context.config);
}

}  // namespace

Result<Command> to_command(const v1::OpenSessionRequest& request, const RequestContext& context) {
  const v1::ProtocolVersions& versions = request.versions();
  const auto version = negotiate({versions.newest(), versions.oldest()}, context.speaks);
  if (!version) return tl::unexpected(version.error());
  Fields fields;
  const Role role = fields.choice("role", request.role(), Role::kClient);
  if (fields.failed()) return fields.checked(Command{});
  return role == Role::kWorker ? open_worker(request, context, *version)
                               : open_client(request, context, *version);
}

Result<Heartbeat> to_command(const v1::Heartbeat& request, const RequestContext& context) {
  const auto pools = static_cast<size_t>(request.pools_size());
  const auto marks = static_cast<size_t>(request.low_water_size());
  Fields fields;
  if (pools > 0) fields.item_count("pools", pools, context.config.pools_max);
  if (marks > 0) fields.item_count("low_water", marks, context.config.sessions_max);
  if (fields.failed()) return fields.checked(Heartbeat{});
  Heartbeat command{context.caller, {}, {}};
  command.pools.reserve(pools);
  for (const v1::PoolReport& report : request.pools())
    command.pools.push_back({fields.id<PoolId>("pools.pool", report.pool()), report.writing_bytes(),
                             report.free_bytes(), report.largest_hole_bytes(),
                             report.pinned_bytes(), report.spans_out()});
  command.low_water.reserve(marks);
  for (const v1::LowWater& mark : request.low_water())
    command.low_water.emplace_back(fields.id<SessionId>("low_water.session", mark.session()),
                                   mark.operation());
  return fields.checked(std::move(command));
}

Result<CloseSession> to_command(const v1::CloseSessionRequest& request,
                                const RequestContext& context) {
  return CloseSession{context.caller, SessionId(request.client_session())};
}

Result<FenceClient> to_command(const v1::FenceClientRequest& request,
                               const RequestContext& context) {
  Fields fields;
  FenceClient command{context.caller,
                      fields.id<SessionId>("client_session", request.client_session())};
  fields.choice("proof", request.proof(), v1::FenceClientRequest::PROOF_BOOT_ID);
  return fields.checked(command);
}

Result<ReleaseOrphans> to_command(const v1::ReleaseOrphansRequest& request,
                                  const RequestContext& context) {
  Fields fields;
  ReleaseOrphans command{context.caller,
                         fields.ids<PoolId>("pools", request.pools(), context.config.pools_max)};
  return fields.checked(std::move(command));
}

void fill(v1::StoreIdentity* identity, const Directory& directory) {
  identity->set_store_id(bytes_of(directory.meta().store_id));
  identity->set_epoch(directory.meta().epoch);
}

void fill(v1::OpenSessionResponse* response, const WorkerOpened& opened,
          const RequestContext& context) {
  if (opened.prove_again.valid()) {
    response->set_prove_again(opened.prove_again.value());
    return fill(response->mutable_store(), context.directory);
  }
  fill_common(response, opened.session, opened.token, opened.version, context);
  response->set_incarnation(opened.incarnation);
  add_clients(response->mutable_predecessor_clients(), opened.predecessor_clients);
  for (const OrphanPool& orphan : opened.orphan_pools) {
    v1::OrphanPool& pool = *response->add_orphan_pools();
    pool.set_pool(orphan.pool.value());
    pool.set_name(orphan.name);
    pool.set_backing_bytes(orphan.backing_bytes);
    for (const std::string& importer : orphan.importers) pool.add_importers(importer);
  }
}

void fill(v1::OpenSessionResponse* response, const ClientOpened& opened,
          const RequestContext& context) {
  fill_common(response, opened.session, opened.token, opened.version, context);
  response->set_operation_low_water(opened.operation_low_water);
}

void fill(v1::ReattachWelcome* welcome, const ReattachBegun& begun, const RequestContext& context) {
  fill(welcome->mutable_store(), context.directory);
  welcome->set_incarnation(begun.incarnation);
  add_clients(welcome->mutable_clients(), begun.clients);
  welcome->set_foreign_store(begun.foreign_store);
  fill_terms(welcome, context.config);
}

}  // namespace berth::rpc
