#include "server/rpc/directory_service.h"

#include "server/rpc/link_reactor.h"
#include "server/rpc/reattach_reactor.h"
#include "server/rpc/unary_call.h"

namespace berth::rpc {
namespace {

using Unary = grpc::ServerUnaryReactor;
using Call = grpc::CallbackServerContext;

template <class Request, class Response>
UnaryCall counted(Call* call, const Request*, const Response*) {
  return {call, &CallMessages<Request, Response>::counted(*call)};
}

// A request whose answer needs nothing but its outcome.
template <class Expected, class Request, class Response>
Unary* command_call(Backend& backend, const UnaryCall& call, const Request* request,
                    Response* response) {
  return submitted(
      backend, call, command_of(backend, *request),
      [response](const Outcome& outcome) { fill(response, expect<Expected>(outcome)); });
}

// The same for a method that counts its calls.
template <class Expected, class Request, class Response>
Unary* counted_call(Backend& backend, Call* call, const Request* request, Response* response) {
  return command_call<Expected>(backend, counted(call, request, response), request, response);
}

// A request whose answer says nothing but that it is done.
template <class Request>
Unary* plain_call(Backend& backend, Call* call, const Request* request) {
  return submitted(backend, call, command_of(backend, *request), [](const Outcome&) {});
}

// A worker comes without a session; a client is opened by its worker.
Result<Command> open_command(Backend& backend, const v1::OpenSessionRequest& request) {
  const Token token = backend.fresh_token();
  const auto view = backend.sequencer.view();
  Caller caller;
  if (request.role() == v1::ROLE_CLIENT) {
    const auto worker = authenticate(*view, request.caller());
    if (!worker) return tl::unexpected(worker.error());
    caller = *worker;
  }
  return to_command(request, backend.context(view, caller, token));
}

}  // namespace

DirectoryService::DirectoryService(Backend& backend)
    : backend_(backend),
      link_calls_(backend.metrics.take_over("/berth.v1.Directory/Link")),
      reserves_(backend.metrics, "/berth.v1.Directory/Reserve"),
      commits_(backend.metrics, "/berth.v1.Directory/Commit"),
      aborts_(backend.metrics, "/berth.v1.Directory/Abort"),
      resolves_(backend.metrics, "/berth.v1.Directory/Resolve"),
      probes_(backend.metrics, "/berth.v1.Directory/Probe"),
      acquires_(backend.metrics, "/berth.v1.Directory/Acquire"),
      renewals_(backend.metrics, "/berth.v1.Directory/Renew"),
      releases_(backend.metrics, "/berth.v1.Directory/Release") {
  SetMessageAllocatorFor_Reserve(&reserves_);
  SetMessageAllocatorFor_Commit(&commits_);
  SetMessageAllocatorFor_Abort(&aborts_);
  SetMessageAllocatorFor_Resolve(&resolves_);
  SetMessageAllocatorFor_Probe(&probes_);
  SetMessageAllocatorFor_Acquire(&acquires_);
  SetMessageAllocatorFor_Renew(&renewals_);
  SetMessageAllocatorFor_Release(&releases_);
}

Unary* DirectoryService::OpenNamespace(Context* call, const v1::OpenNamespaceRequest* request,
                                       v1::OpenNamespaceResponse* response) {
  auto command = [&]() -> Result<Command> {
    const auto view = backend_.sequencer.view();
    return to_command(*request, backend_.context(view)).map([](berth::OpenNamespace&& c) {
      return Command(std::move(c));
    });
  }();
  return submitted(backend_, call, std::move(command),
                   [response](const Outcome& outcome, const RequestContext& context) {
                     fill(response, expect<NamespaceOpened>(outcome), context);
                   });
}

Unary* DirectoryService::OpenSession(Context* call, const v1::OpenSessionRequest* request,
                                     v1::OpenSessionResponse* response) {
  return submitted(backend_, call, open_command(backend_, *request),
                   [response](const Outcome& outcome, const RequestContext& context) {
                     if (const auto* worker = std::get_if<WorkerOpened>(&outcome))
                       fill(response, *worker, context);
                     else
                       fill(response, expect<ClientOpened>(outcome), context);
                   });
}

grpc::ServerBidiReactor<v1::ReattachRequest, v1::ReattachResponse>* DirectoryService::Reattach(
    Context*) {
  return ReattachReactor::start(backend_);
}

grpc::ServerBidiReactor<v1::LinkRequest, v1::LinkResponse>* DirectoryService::Link(Context* call) {
  return LinkReactor::start(backend_, link_calls_, *call);
}

Unary* DirectoryService::RegisterPool(Context* call, const v1::RegisterPoolRequest* request,
                                      v1::RegisterPoolResponse* response) {
  return command_call<PoolRegistered>(backend_, call, request, response);
}

Unary* DirectoryService::ClosePool(Context* call, const v1::ClosePoolRequest* request,
                                   v1::ClosePoolResponse* response) {
  return command_call<PoolClosing>(backend_, call, request, response);
}

Unary* DirectoryService::Reserve(Context* call, const v1::ReserveRequest* request,
                                 v1::ReserveResponse* response) {
  return counted_call<Reserved>(backend_, call, request, response);
}

Unary* DirectoryService::Commit(Context* call, const v1::CommitRequest* request,
                                v1::CommitResponse* response) {
  return counted_call<Committed>(backend_, call, request, response);
}

Unary* DirectoryService::Abort(Context* call, const v1::AbortRequest* request,
                               v1::AbortResponse* response) {
  return counted_call<PerItem>(backend_, call, request, response);
}

Unary* DirectoryService::Resolve(Context* call, const v1::ResolveRequest* request,
                                 v1::ResolveResponse* response) {
  const auto resolved = [&]() -> Result<> {
    const auto view = backend_.sequencer.view();
    const auto caller = authenticate(*view, request->caller());
    if (!caller) return tl::unexpected(caller.error());
    return answer(*request, backend_.context(view, *caller), response);
  }();
  return finished(counted(call, request, response), resolved);
}

Unary* DirectoryService::Probe(Context* call, const v1::ProbeRequest* request,
                               v1::ProbeResponse* response) {
  const bool is_degraded = backend_.sequencer.is_degraded();
  const auto probed = [&]() -> Result<> {
    const auto view = backend_.sequencer.view();
    Caller caller;
    if (request->has_caller()) {
      const auto known = authenticate(*view, request->caller());
      if (!known) return tl::unexpected(known.error());
      caller = *known;
    }
    return answer(*request, is_degraded, backend_.context(view, caller), response);
  }();
  if (probed) backend_.items.count(*response);
  return finished(counted(call, request, response), probed);
}

Unary* DirectoryService::Acquire(Context* call, const v1::AcquireRequest* request,
                                 v1::AcquireResponse* response) {
  return counted_call<Acquired>(backend_, call, request, response);
}

Unary* DirectoryService::Renew(Context* call, const v1::RenewRequest* request,
                               v1::RenewResponse* response) {
  return counted_call<PerItem>(backend_, call, request, response);
}

Unary* DirectoryService::Release(Context* call, const v1::ReleaseRequest* request,
                                 v1::ReleaseResponse* response) {
  return counted_call<PerItem>(backend_, call, request, response);
}

Unary* DirectoryService::CloseSession(Context* call, const v1::CloseSessionRequest* request,
                                      v1::CloseSessionResponse*) {
  return plain_call(backend_, call, request);
}

Unary* DirectoryService::FenceClient(Context* call, const v1::FenceClientRequest* request,
                                     v1::FenceClientResponse*) {
  return plain_call(backend_, call, request);
}

Unary* DirectoryService::ReleaseOrphans(Context* call, const v1::ReleaseOrphansRequest* request,
                                        v1::ReleaseOrphansResponse*) {
  return plain_call(backend_, call, request);
}

}  // namespace berth::rpc
