// The Directory service. Each call is authenticated, translated, submitted and translated back;
// probes and resolves are answered from the view at once. Nothing is decided here.
#pragma once

#include "berth/v1/directory.grpc.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_messages.h"

namespace berth::rpc {

class DirectoryService final : public v1::Directory::CallbackService {
 public:
  explicit DirectoryService(Backend& backend);

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* OpenNamespace(Context*, const v1::OpenNamespaceRequest*,
                       v1::OpenNamespaceResponse*) override;
  Unary* OpenSession(Context*, const v1::OpenSessionRequest*, v1::OpenSessionResponse*) override;
  grpc::ServerBidiReactor<v1::ReattachRequest, v1::ReattachResponse>* Reattach(Context*) override;
  grpc::ServerBidiReactor<v1::LinkRequest, v1::LinkResponse>* Link(Context*) override;
  Unary* RegisterPool(Context*, const v1::RegisterPoolRequest*, v1::RegisterPoolResponse*) override;
  Unary* ClosePool(Context*, const v1::ClosePoolRequest*, v1::ClosePoolResponse*) override;
  Unary* Reserve(Context*, const v1::ReserveRequest*, v1::ReserveResponse*) override;
  Unary* Commit(Context*, const v1::CommitRequest*, v1::CommitResponse*) override;
  Unary* Abort(Context*, const v1::AbortRequest*, v1::AbortResponse*) override;
  Unary* Resolve(Context*, const v1::ResolveRequest*, v1::ResolveResponse*) override;
  Unary* Probe(Context*, const v1::ProbeRequest*, v1::ProbeResponse*) override;
  Unary* Acquire(Context*, const v1::AcquireRequest*, v1::AcquireResponse*) override;
  Unary* Renew(Context*, const v1::RenewRequest*, v1::RenewResponse*) override;
  Unary* Release(Context*, const v1::ReleaseRequest*, v1::ReleaseResponse*) override;
  Unary* CloseSession(Context*, const v1::CloseSessionRequest*, v1::CloseSessionResponse*) override;
  Unary* FenceClient(Context*, const v1::FenceClientRequest*, v1::FenceClientResponse*) override;
  Unary* ReleaseOrphans(Context*, const v1::ReleaseOrphansRequest*,
                        v1::ReleaseOrphansResponse*) override;

 private:
  Backend& backend_;
  const CallMetrics::Method& link_calls_;
  // Of the methods that are called for every batch of an engine.
  CallMessages<v1::ReserveRequest, v1::ReserveResponse> reserves_;
  CallMessages<v1::CommitRequest, v1::CommitResponse> commits_;
  CallMessages<v1::AbortRequest, v1::AbortResponse> aborts_;
  CallMessages<v1::ResolveRequest, v1::ResolveResponse> resolves_;
  CallMessages<v1::ProbeRequest, v1::ProbeResponse> probes_;
  CallMessages<v1::AcquireRequest, v1::AcquireResponse> acquires_;
  CallMessages<v1::RenewRequest, v1::RenewResponse> renewals_;
  CallMessages<v1::ReleaseRequest, v1::ReleaseResponse> releases_;
};

}  // namespace berth::rpc
