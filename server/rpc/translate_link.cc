// The messages of Link: which request each is, and which answer.
#include <variant>

#include "common/check.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

using Asked = v1::LinkRequest::BodyCase;

// A command of a fixed type as one of any.
template <class C>
Result<Command> any(Result<C> command) {
  return std::move(command).map([](C&& c) { return Command(std::move(c)); });
}

template <class O>
const O& as(const Outcome& outcome) {
  const O* value = std::get_if<O>(&outcome);
  BERTH_CHECK(value, "the outcome is not that of the command");
  return *value;
}

void add_replicas(google::protobuf::RepeatedField<uint64_t>* out,
                  const std::vector<ReplicaId>& replicas) {
  out->Reserve(static_cast<int>(replicas.size()));
  for (const ReplicaId replica : replicas) out->Add(replica.value());
}

// On Link the hello says who speaks.
Result<> refuse_caller(bool given) {
  if (!given) return {};
  return refuse(Reason::kInvalidArgument,
                "caller = given: the Link's hello names the caller; accepted: left out");
}

bool names_caller(const v1::LinkRequest& r) {
  switch (r.body_case()) {
    case Asked::kReserve:
      return r.reserve().has_caller();
    case Asked::kCommit:
      return r.commit().has_caller();
    case Asked::kAbort:
      return r.abort().has_caller();
    case Asked::kProbe:
      return r.probe().has_caller();
    case Asked::kAcquire:
      return r.acquire().has_caller();
    case Asked::kRenew:
      return r.renew().has_caller();
    case Asked::kRelease:
      return r.release().has_caller();
    case Asked::kResolve:
      return r.resolve().has_caller();
    case Asked::kOpenClient:
      return r.open_client().has_caller();
    case Asked::kCloseSession:
      return r.close_session().has_caller();
    case Asked::kFenceClient:
      return r.fence_client().has_caller();
    case Asked::kReleaseOrphans:
      return r.release_orphans().has_caller();
    case Asked::kRegisterPool:
      return r.register_pool().has_caller();
    case Asked::kClosePool:
      return r.close_pool().has_caller();
    case Asked::kHello:
    case Asked::kHeartbeat:
    case Asked::kReclaimAck:
    case Asked::kOpenNamespace:
    case Asked::kExportPool:
    case Asked::kImportPool:
    case Asked::kEndExports:
    case Asked::BODY_NOT_SET:
      return false;
  }
  return false;
}

Result<Command> open_client(const v1::OpenSessionRequest& request, const RequestContext& context) {
  if (request.role() != v1::ROLE_CLIENT)
    return refuse(Reason::kInvalidArgument,
                  "role = " + std::to_string(request.role()) +
                      ": a Link opens clients only; accepted: ROLE_CLIENT (2)");
  return to_command(request, context);
}

}  // namespace

bool is_query(const v1::LinkRequest& request) {
  return request.has_probe() || request.has_resolve();
}

Result<Command> to_command(const v1::LinkRequest& r, const RequestContext& context) {
  if (auto ok = refuse_caller(names_caller(r)); !ok) return tl::unexpected(ok.error());
  switch (r.body_case()) {
    case Asked::kHeartbeat:
      return any(to_command(r.heartbeat(), context));
    case Asked::kReserve:
      return any(to_command(r.reserve(), context));
    case Asked::kCommit:
      return any(to_command(r.commit(), context));
    case Asked::kAbort:
      return any(to_command(r.abort(), context));
    case Asked::kAcquire:
      return any(to_command(r.acquire(), context));
    case Asked::kRenew:
      return any(to_command(r.renew(), context));
    case Asked::kRelease:
      return any(to_command(r.release(), context));
    case Asked::kReclaimAck:
      return any(to_command(r.reclaim_ack(), context));
    case Asked::kOpenClient:
      return open_client(r.open_client(), context);
    case Asked::kCloseSession:
      return any(to_command(r.close_session(), context));
    case Asked::kFenceClient:
      return any(to_command(r.fence_client(), context));
    case Asked::kReleaseOrphans:
      return any(to_command(r.release_orphans(), context));
    case Asked::kOpenNamespace:
      return any(to_command(r.open_namespace(), context));
    case Asked::kRegisterPool:
      return any(to_command(r.register_pool(), context));
    case Asked::kClosePool:
      return any(to_command(r.close_pool(), context));
    case Asked::kExportPool:
      return any(to_command(r.export_pool(), context));
    case Asked::kImportPool:
      return any(to_command(r.import_pool(), context));
    case Asked::kEndExports:
      return any(to_command(r.end_exports(), context));
    case Asked::kHello:
      return refuse(Reason::kInvalidArgument,
                    "hello: was sent before; accepted: one, as the first message");
    case Asked::kProbe:
    case Asked::kResolve:
    case Asked::BODY_NOT_SET:
      break;
  }
  return refuse(Reason::kInvalidArgument,
                "body: not a request that this server knows; accepted: one of LinkRequest");
}

Result<> answer(const v1::LinkRequest& request, bool store_degraded, const RequestContext& context,
                v1::LinkResponse* response) {
  if (auto ok = refuse_caller(names_caller(request)); !ok) return ok;
  if (request.has_probe())
    return answer(request.probe(), store_degraded, context, response->mutable_probe());
  BERTH_CHECK(request.has_resolve(), "only queries are answered from the view");
  return answer(request.resolve(), context, response->mutable_resolve());
}

void fill(v1::LinkResponse* r, Asked asked, const Outcome& outcome, const RequestContext& context) {
  switch (asked) {
    case Asked::kReserve:
      return fill(r->mutable_reserve(), as<Reserved>(outcome));
    case Asked::kCommit:
      return fill(r->mutable_commit(), as<Committed>(outcome));
    case Asked::kAbort:
      return fill(r->mutable_abort(), as<PerItem>(outcome));
    case Asked::kAcquire:
      return fill(r->mutable_acquire(), as<Acquired>(outcome));
    case Asked::kRenew:
      return fill(r->mutable_renew(), as<PerItem>(outcome));
    case Asked::kRelease:
      return fill(r->mutable_release(), as<PerItem>(outcome));
    case Asked::kOpenClient:
      return fill(r->mutable_open_client(), as<ClientOpened>(outcome), context);
    case Asked::kOpenNamespace:
      return fill(r->mutable_open_namespace(), as<NamespaceOpened>(outcome), context);
    case Asked::kRegisterPool:
      return fill(r->mutable_register_pool(), as<PoolRegistered>(outcome));
    case Asked::kClosePool:
      return fill(r->mutable_close_pool(), as<PoolClosing>(outcome));
    case Asked::kCloseSession:
      r->mutable_close_session();
      return;
    case Asked::kFenceClient:
      r->mutable_fence_client();
      return;
    case Asked::kReleaseOrphans:
      r->mutable_release_orphans();
      return;
    case Asked::kExportPool:
      r->mutable_export_pool();
      return;
    case Asked::kImportPool:
      r->mutable_import_pool();
      return;
    case Asked::kEndExports:
      r->mutable_end_exports();
      return;
    case Asked::kHello:
    case Asked::kHeartbeat:
    case Asked::kReclaimAck:
    case Asked::kProbe:
    case Asked::kResolve:
    case Asked::BODY_NOT_SET:
      return;
  }
}

v1::LinkResponse to_message(const Ask& ask) {
  v1::LinkResponse message;
  switch (ask.kind) {
    case Ask::Kind::kReclaim:
      add_replicas(message.mutable_reclaim()->mutable_replicas(), ask.replicas);
      break;
    case Ask::Kind::kCancel:
      message.mutable_cancel()->set_client_session(ask.client.value());
      message.mutable_cancel()->set_operation(ask.operation);
      add_replicas(message.mutable_cancel()->mutable_replicas(), ask.replicas);
      break;
    case Ask::Kind::kRevoke:
      message.mutable_revoke()->set_client_session(ask.client.value());
      message.mutable_revoke()->set_operation(ask.operation);
      message.mutable_revoke()->set_lease(ask.lease.value());
      break;
    case Ask::Kind::kClientFenced:
      message.mutable_client_fenced()->set_client_session(ask.client.value());
      break;
    case Ask::Kind::kDropImport:
      message.mutable_drop_import()->set_pool(ask.pool.value());
      break;
    case Ask::Kind::kWorkerFenced:
      break;
  }
  return message;
}

}  // namespace berth::rpc
