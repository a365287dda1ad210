// What an operator does, as commands: every action of the Admin service but those on policies.
#include "common/names.h"
#include "common/text.h"
#include "server/directory/chunks.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/fields.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/views.h"

namespace berth::rpc {
namespace {

constexpr size_t kFenceReasonLengthMax = 256;

Result<Command> fence_command(const v1::FenceRequest& request) {
  Fields fields;
  FenceByOperator command;
  command.session = SessionId(request.session());
  command.node = fields.name("node", request.node(), Given::kOptional, kNameLengthMax);
  if (command.session.valid() == !command.node.empty())
    fields.refuse("session", id_text(request.session()) + ", node = " + quote(command.node),
                  "names none or two things", "either a session or a node");
  command.reason = fields.text("reason", request.reason(), Given::kRequired, kFenceReasonLengthMax);
  command.confirm_unmapped = request.confirm_unmapped();
  return fields.checked(Command(std::move(command)));
}

// Chunks of a namespace as Evict, Pin and Unpin name them.
struct Chunks {
  std::string namespace_name;
  std::vector<Digest> digests;
};

template <class Request>
Result<Chunks> chunks_named(const Request& request, const RequestContext& context) {
  Fields fields;
  Chunks chunks;
  chunks.namespace_name = fields.name("namespace_name", request.namespace_name(), Given::kRequired,
                                      kNamespaceNameLengthMax);
  if (fields.failed()) return fields.checked(std::move(chunks));
  const auto ns = namespace_named(context.directory, chunks.namespace_name);
  if (!ns) return tl::unexpected(ns.error());
  chunks.digests = fields.digests("digests", request.digests(), (*ns)->spec.digest_bytes,
                                  chunks_max(**ns, context.config));
  return fields.checked(std::move(chunks));
}

Result<Command> evict_command(const v1::EvictRequest& request, const RequestContext& context) {
  const bool names_chunks = !request.namespace_name().empty() || !request.digests().empty();
  if (names_chunks && request.replicas_size() == 0) {
    auto chunks = chunks_named(request, context);
    if (!chunks) return tl::unexpected(chunks.error());
    return Command(EvictChunks{std::move(chunks->namespace_name), std::move(chunks->digests)});
  }
  Fields fields;
  if (names_chunks)
    fields.refuse("namespace_name", quote(request.namespace_name()), "is given beside replicas",
                  "either replicas, or a namespace and digests");
  berth::Evict command{
      fields.ids<ReplicaId>("replicas", request.replicas(), context.config.batch_items_max)};
  return fields.checked(Command(std::move(command)));
}

Result<Command> evict_namespace_command(const v1::EvictNamespaceRequest& request) {
  Fields fields;
  berth::EvictNamespace command{
      fields.name("name", request.name(), Given::kRequired, kNamespaceNameLengthMax)};
  return fields.checked(Command(std::move(command)));
}

Result<Command> trim_command(const v1::TrimPoolRequest& request) {
  Fields fields;
  berth::TrimPool command{fields.id<PoolId>("pool", request.pool()),
                          fields.number("target_bytes", request.target_bytes(), 0, kBytesMax)};
  return fields.checked(Command(std::move(command)));
}

template <class DrainOrUndrain>
Result<Command> drain_command(const v1::DrainRequest& request) {
  Fields fields;
  const DrainOrUndrain command{PoolId(request.pool()), SessionId(request.worker())};
  if (command.pool.valid() == command.worker.valid())
    fields.refuse("pool", id_text(request.pool()) + ", worker = " + id_text(request.worker()),
                  "names none or two things", "either a pool or a worker session");
  return fields.checked(Command(command));
}

Result<Command> pin_command(const v1::PinRequest& request, const RequestContext& context) {
  auto chunks = chunks_named(request, context);
  if (!chunks) return tl::unexpected(chunks.error());
  Fields fields;
  PinChunks command{std::move(chunks->namespace_name), std::move(chunks->digests),
                    fields.choice("kind", request.kind(), PinKind::kHard),
                    fields.duration("ttl_ms", request.ttl_ms(), context.config.pin_ttl_max)};
  if (command.kind == PinKind::kHard && request.ttl_ms() != 0)
    fields.refuse("ttl_ms", std::to_string(request.ttl_ms()), "is for soft pins only",
                  "0: a hard pin stays until it is taken off");
  return fields.checked(Command(std::move(command)));
}

Result<Command> unpin_command(const v1::UnpinRequest& request, const RequestContext& context) {
  auto chunks = chunks_named(request, context);
  if (!chunks) return tl::unexpected(chunks.error());
  return Command(UnpinChunks{std::move(chunks->namespace_name), std::move(chunks->digests)});
}

Result<Command> quota_command(const v1::SetNamespaceQuotaRequest& request) {
  Fields fields;
  berth::SetNamespaceQuota command{
      fields.name("name", request.name(), Given::kRequired, kNamespaceNameLengthMax),
      fields.number("quota_bytes", request.quota_bytes(), 0, kBytesMax)};
  return fields.checked(Command(std::move(command)));
}

std::string column_of(const Outcome& outcome) {
  const auto& done = expect<PerItem>(outcome).done;
  return {done.begin(), done.end()};
}

// The view is let go before the command is submitted: its answer may come at once.
template <class Request>
Result<Command> read_in_view(Backend& backend, const Request& request,
                             Result<Command> (*read)(const Request&, const RequestContext&)) {
  const auto view = backend.sequencer.view();
  return read(request, backend.context(view));
}

auto job_answer(v1::JobResponse* response) {
  return [response](const Outcome& outcome) {
    response->set_job(expect<JobStarted>(outcome).job.value());
  };
}

auto drain_answer(v1::DrainResponse* response) {
  return [response](const Outcome& outcome) {
    const auto& draining = expect<Draining>(outcome);
    for (const PoolId pool : draining.pools) response->add_pools(pool.value());
    response->set_replicas_left(draining.replicas_left);
  };
}

}  // namespace

AdminService::Unary* AdminService::Fence(Context* call, const v1::FenceRequest* request,
                                         v1::FenceResponse* response) {
  return submitted(backend_, call, fence_command(*request), [response](const Outcome& outcome) {
    for (const SessionId session : expect<Fenced>(outcome).sessions)
      response->add_sessions(session.value());
  });
}

AdminService::Unary* AdminService::Evict(Context* call, const v1::EvictRequest* request,
                                         v1::EvictResponse* response) {
  return submitted(
      backend_, call, read_in_view(backend_, *request, evict_command),
      [response](const Outcome& outcome) { response->set_retired(column_of(outcome)); });
}

AdminService::Unary* AdminService::EvictNamespace(Context* call,
                                                  const v1::EvictNamespaceRequest* request,
                                                  v1::JobResponse* response) {
  return submitted(backend_, call, evict_namespace_command(*request), job_answer(response));
}

AdminService::Unary* AdminService::TrimPool(Context* call, const v1::TrimPoolRequest* request,
                                            v1::JobResponse* response) {
  return submitted(backend_, call, trim_command(*request), job_answer(response));
}

AdminService::Unary* AdminService::Drain(Context* call, const v1::DrainRequest* request,
                                         v1::DrainResponse* response) {
  return submitted(backend_, call, drain_command<berth::Drain>(*request), drain_answer(response));
}

AdminService::Unary* AdminService::Undrain(Context* call, const v1::DrainRequest* request,
                                           v1::DrainResponse* response) {
  return submitted(backend_, call, drain_command<berth::Undrain>(*request), drain_answer(response));
}

AdminService::Unary* AdminService::Pin(Context* call, const v1::PinRequest* request,
                                       v1::PinResponse* response) {
  return submitted(
      backend_, call, read_in_view(backend_, *request, pin_command),
      [response](const Outcome& outcome) { response->set_pinned(column_of(outcome)); });
}

AdminService::Unary* AdminService::Unpin(Context* call, const v1::UnpinRequest* request,
                                         v1::UnpinResponse* response) {
  return submitted(
      backend_, call, read_in_view(backend_, *request, unpin_command),
      [response](const Outcome& outcome) { response->set_unpinned(column_of(outcome)); });
}

AdminService::Unary* AdminService::SetNamespaceQuota(Context* call,
                                                     const v1::SetNamespaceQuotaRequest* request,
                                                     v1::SetNamespaceQuotaResponse*) {
  return submitted(backend_, call, quota_command(*request), [](const Outcome&) {});
}

}  // namespace berth::rpc
