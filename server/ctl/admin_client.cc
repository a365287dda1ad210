#include "server/ctl/admin_client.h"

#include <grpcpp/client_context.h>

#include <utility>

#include "berth/v1/admin.grpc.pb.h"
#include "common/rpc_channel.h"
#include "server/ctl/rpc_failure.h"

namespace berth::ctl {
namespace {

class GrpcEventStream final : public EventStream {
 public:
  GrpcEventStream(v1::Admin::Stub& stub, const v1::WatchEventsRequest& request, std::string address)
      : address_(std::move(address)), reader_(stub.WatchEvents(&context_, request)) {}
  ~GrpcEventStream() override {
    // A reader must not go before its call has ended.
    context_.TryCancel();
    if (!ended_) reader_->Finish();
  }

  Answer<std::optional<v1::WatchEventsResponse>> next() override {
    if (ended_) return std::optional<v1::WatchEventsResponse>{};
    v1::WatchEventsResponse response;
    if (reader_->Read(&response)) return response;
    ended_ = true;
    const grpc::Status status = reader_->Finish();
    if (status.ok()) return std::optional<v1::WatchEventsResponse>{};
    return fail(failure_of(status, address_, std::nullopt));
  }

 private:
  std::string address_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchEventsResponse>> reader_;
  bool ended_ = false;
};

}  // namespace

struct AdminClient::Connection {
  std::unique_ptr<v1::Admin::Stub> stub;
};

Answer<AdminClient> AdminClient::open(const Address& address, Duration timeout) {
  // Whether plain TCP may leave this host was decided where the server listens. A connection of its
  // own: a new attempt must not inherit the back-off of an older one.
  const ChannelOptions options{.exposure = Exposure::kInsecureAllowed, .own_connection = true};
  auto channel = usage_answer(make_channel("--server", address, options));
  if (!channel) return fail(std::move(channel.error()));
  return AdminClient(address.text(), timeout,
                     std::make_unique<Connection>(Connection{v1::Admin::NewStub(*channel)}));
}

AdminClient::AdminClient(std::string address, Duration timeout,
                         std::unique_ptr<Connection> connection)
    : address_(std::move(address)), timeout_(timeout), connection_(std::move(connection)) {}
AdminClient::AdminClient(AdminClient&&) noexcept = default;
AdminClient::~AdminClient() = default;

template <class Response, class Request, class Method>
Answer<Response> AdminClient::unary(Method method, const Request& request) {
  grpc::ClientContext context;
  set_deadline(context, timeout_);
  Response response;
  const grpc::Status status = (connection_->stub.get()->*method)(&context, request, &response);
  if (!status.ok()) return fail(failure_of(status, address_, timeout_));
  return response;
}

Answer<v1::GetStatusResponse> AdminClient::call(const v1::GetStatusRequest& request) {
  return unary<v1::GetStatusResponse>(&v1::Admin::Stub::GetStatus, request);
}
Answer<v1::GetUsageResponse> AdminClient::call(const v1::GetUsageRequest& request) {
  return unary<v1::GetUsageResponse>(&v1::Admin::Stub::GetUsage, request);
}
Answer<v1::ListPoolsResponse> AdminClient::call(const v1::ListPoolsRequest& request) {
  return unary<v1::ListPoolsResponse>(&v1::Admin::Stub::ListPools, request);
}
Answer<v1::ListSessionsResponse> AdminClient::call(const v1::ListSessionsRequest& request) {
  return unary<v1::ListSessionsResponse>(&v1::Admin::Stub::ListSessions, request);
}
Answer<v1::ListNamespacesResponse> AdminClient::call(const v1::ListNamespacesRequest& request) {
  return unary<v1::ListNamespacesResponse>(&v1::Admin::Stub::ListNamespaces, request);
}
Answer<v1::ListObjectsResponse> AdminClient::call(const v1::ListObjectsRequest& request) {
  return unary<v1::ListObjectsResponse>(&v1::Admin::Stub::ListObjects, request);
}
Answer<v1::InspectObjectResponse> AdminClient::call(const v1::InspectObjectRequest& request) {
  return unary<v1::InspectObjectResponse>(&v1::Admin::Stub::InspectObject, request);
}
Answer<v1::ListLeasesResponse> AdminClient::call(const v1::ListLeasesRequest& request) {
  return unary<v1::ListLeasesResponse>(&v1::Admin::Stub::ListLeases, request);
}
Answer<v1::ListReservationsResponse> AdminClient::call(const v1::ListReservationsRequest& request) {
  return unary<v1::ListReservationsResponse>(&v1::Admin::Stub::ListReservations, request);
}
Answer<v1::ListJobsResponse> AdminClient::call(const v1::ListJobsRequest& request) {
  return unary<v1::ListJobsResponse>(&v1::Admin::Stub::ListJobs, request);
}
Answer<v1::CheckResponse> AdminClient::call(const v1::CheckRequest& request) {
  return unary<v1::CheckResponse>(&v1::Admin::Stub::Check, request);
}
Answer<v1::FenceResponse> AdminClient::call(const v1::FenceRequest& request) {
  return unary<v1::FenceResponse>(&v1::Admin::Stub::Fence, request);
}
Answer<v1::EvictResponse> AdminClient::call(const v1::EvictRequest& request) {
  return unary<v1::EvictResponse>(&v1::Admin::Stub::Evict, request);
}
Answer<v1::JobResponse> AdminClient::call(const v1::EvictNamespaceRequest& request) {
  return unary<v1::JobResponse>(&v1::Admin::Stub::EvictNamespace, request);
}
Answer<v1::JobResponse> AdminClient::call(const v1::TrimPoolRequest& request) {
  return unary<v1::JobResponse>(&v1::Admin::Stub::TrimPool, request);
}
Answer<v1::PinResponse> AdminClient::call(const v1::PinRequest& request) {
  return unary<v1::PinResponse>(&v1::Admin::Stub::Pin, request);
}
Answer<v1::UnpinResponse> AdminClient::call(const v1::UnpinRequest& request) {
  return unary<v1::UnpinResponse>(&v1::Admin::Stub::Unpin, request);
}
Answer<v1::ListPinsResponse> AdminClient::call(const v1::ListPinsRequest& request) {
  return unary<v1::ListPinsResponse>(&v1::Admin::Stub::ListPins, request);
}
Answer<v1::GetPolicyResponse> AdminClient::call(const v1::GetPolicyRequest& request) {
  return unary<v1::GetPolicyResponse>(&v1::Admin::Stub::GetPolicy, request);
}
Answer<v1::SetPolicyResponse> AdminClient::call(const v1::SetPolicyRequest& request) {
  return unary<v1::SetPolicyResponse>(&v1::Admin::Stub::SetPolicy, request);
}
Answer<v1::ExplainResponse> AdminClient::call(const v1::ExplainRequest& request) {
  return unary<v1::ExplainResponse>(&v1::Admin::Stub::Explain, request);
}
Answer<v1::DrainResponse> AdminClient::drain(const v1::DrainRequest& request) {
  return unary<v1::DrainResponse>(&v1::Admin::Stub::Drain, request);
}
Answer<v1::DrainResponse> AdminClient::undrain(const v1::DrainRequest& request) {
  return unary<v1::DrainResponse>(&v1::Admin::Stub::Undrain, request);
}
Answer<v1::SetNamespaceQuotaResponse> AdminClient::call(
    const v1::SetNamespaceQuotaRequest& request) {
  return unary<v1::SetNamespaceQuotaResponse>(&v1::Admin::Stub::SetNamespaceQuota, request);
}

std::unique_ptr<EventStream> AdminClient::watch(const v1::WatchEventsRequest& request) {
  return std::make_unique<GrpcEventStream>(*connection_->stub, request, address_);
}

}  // namespace berth::ctl
