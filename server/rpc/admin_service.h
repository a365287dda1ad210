// The Admin service: views of every record kind, and the actions of an operator. Views read what is
// installed; actions are commands like any other.
#pragma once

#include <atomic>
#include <string>

#include "berth/v1/admin.grpc.pb.h"
#include "server/rpc/backend.h"
#include "server/rpc/server_health.h"
#include "server/rpc/views.h"

namespace berth::rpc {

// What the server knows about itself.
struct ServerFacts {
  std::string version;
  std::string durability;
  std::string state_directory;
  int64_t started_wall_millis = 0;
  int64_t started_monotonic_millis = 0;
};

class AdminService final : public v1::Admin::CallbackService {
 public:
  AdminService(Backend& backend, const ServerHealth& health, ServerFacts facts)
      : backend_(backend), health_(health), facts_(std::move(facts)) {}

  using Context = grpc::CallbackServerContext;
  using Unary = grpc::ServerUnaryReactor;

  Unary* GetStatus(Context*, const v1::GetStatusRequest*, v1::GetStatusResponse*) override;
  Unary* GetUsage(Context*, const v1::GetUsageRequest*, v1::GetUsageResponse*) override;
  Unary* ListPools(Context*, const v1::ListPoolsRequest*, v1::ListPoolsResponse*) override;
  Unary* ListSessions(Context*, const v1::ListSessionsRequest*, v1::ListSessionsResponse*) override;
  Unary* ListNamespaces(Context*, const v1::ListNamespacesRequest*,
                        v1::ListNamespacesResponse*) override;
  Unary* ListObjects(Context*, const v1::ListObjectsRequest*, v1::ListObjectsResponse*) override;
  Unary* InspectObject(Context*, const v1::InspectObjectRequest*,
                       v1::InspectObjectResponse*) override;
  Unary* ListLeases(Context*, const v1::ListLeasesRequest*, v1::ListLeasesResponse*) override;
  Unary* ListReservations(Context*, const v1::ListReservationsRequest*,
                          v1::ListReservationsResponse*) override;
  Unary* ListJobs(Context*, const v1::ListJobsRequest*, v1::ListJobsResponse*) override;
  grpc::ServerWriteReactor<v1::WatchEventsResponse>* WatchEvents(
      Context*, const v1::WatchEventsRequest*) override;
  Unary* Check(Context*, const v1::CheckRequest*, v1::CheckResponse*) override;
  Unary* Fence(Context*, const v1::FenceRequest*, v1::FenceResponse*) override;
  Unary* Evict(Context*, const v1::EvictRequest*, v1::EvictResponse*) override;
  Unary* EvictNamespace(Context*, const v1::EvictNamespaceRequest*, v1::JobResponse*) override;
  Unary* TrimPool(Context*, const v1::TrimPoolRequest*, v1::JobResponse*) override;
  Unary* Drain(Context*, const v1::DrainRequest*, v1::DrainResponse*) override;
  Unary* Undrain(Context*, const v1::DrainRequest*, v1::DrainResponse*) override;
  Unary* Pin(Context*, const v1::PinRequest*, v1::PinResponse*) override;
  Unary* Unpin(Context*, const v1::UnpinRequest*, v1::UnpinResponse*) override;
  Unary* ListPins(Context*, const v1::ListPinsRequest*, v1::ListPinsResponse*) override;
  Unary* GetPolicy(Context*, const v1::GetPolicyRequest*, v1::GetPolicyResponse*) override;
  Unary* SetPolicy(Context*, const v1::SetPolicyRequest*, v1::SetPolicyResponse*) override;
  Unary* Explain(Context*, const v1::ExplainRequest*, v1::ExplainResponse*) override;
  Unary* SetNamespaceQuota(Context*, const v1::SetNamespaceQuotaRequest*,
                           v1::SetNamespaceQuotaResponse*) override;

 private:
  ViewContext context(const DirectoryView& view) const;
  template <class Request, class Response>
  Unary* list_call(Context* call, const Request* request, Response* response);

  Backend& backend_;
  const ServerHealth& health_;
  const ServerFacts facts_;
  std::atomic<bool> is_checking_{false};
};

}  // namespace berth::rpc
