// The Admin service as berthctl calls it: one blocking call per request type, each with the same
// deadline, each failure already classified for the command line. The only code of berthctl that
// knows gRPC.
//
// The connection is made by the first call and repaired by later ones. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "berth/v1/admin.pb.h"
#include "common/address.h"
#include "common/time.h"
#include "server/ctl/failure.h"

namespace berth::ctl {

inline constexpr std::string_view kServerDefault = "127.0.0.1:7420";

// Events as they come. Ends with the client that made it.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // Waits for the next answer; nothing when the server ended the stream in good order.
  virtual Answer<std::optional<v1::WatchEventsResponse>> next() = 0;
};

class AdminClient {
 public:
  // `timeout` is the deadline of each call.
  static Answer<AdminClient> open(const Address& address, Duration timeout);
  AdminClient(AdminClient&&) noexcept;
  ~AdminClient();

  const std::string& address() const { return address_; }

  Answer<v1::GetStatusResponse> call(const v1::GetStatusRequest& request);
  Answer<v1::GetUsageResponse> call(const v1::GetUsageRequest& request);
  Answer<v1::ListPoolsResponse> call(const v1::ListPoolsRequest& request);
  Answer<v1::ListSessionsResponse> call(const v1::ListSessionsRequest& request);
  Answer<v1::ListNamespacesResponse> call(const v1::ListNamespacesRequest& request);
  Answer<v1::ListObjectsResponse> call(const v1::ListObjectsRequest& request);
  Answer<v1::InspectObjectResponse> call(const v1::InspectObjectRequest& request);
  Answer<v1::ListLeasesResponse> call(const v1::ListLeasesRequest& request);
  Answer<v1::ListReservationsResponse> call(const v1::ListReservationsRequest& request);
  Answer<v1::ListJobsResponse> call(const v1::ListJobsRequest& request);
  Answer<v1::CheckResponse> call(const v1::CheckRequest& request);
  Answer<v1::FenceResponse> call(const v1::FenceRequest& request);
  Answer<v1::EvictResponse> call(const v1::EvictRequest& request);
  Answer<v1::JobResponse> call(const v1::EvictNamespaceRequest& request);
  Answer<v1::JobResponse> call(const v1::TrimPoolRequest& request);
  Answer<v1::PinResponse> call(const v1::PinRequest& request);
  Answer<v1::UnpinResponse> call(const v1::UnpinRequest& request);
  Answer<v1::ListPinsResponse> call(const v1::ListPinsRequest& request);
  Answer<v1::GetPolicyResponse> call(const v1::GetPolicyRequest& request);
  Answer<v1::SetPolicyResponse> call(const v1::SetPolicyRequest& request);
  Answer<v1::ExplainResponse> call(const v1::ExplainRequest& request);
  Answer<v1::SetNamespaceQuotaResponse> call(const v1::SetNamespaceQuotaRequest& request);
  // One request type for two calls.
  Answer<v1::DrainResponse> drain(const v1::DrainRequest& request);
  Answer<v1::DrainResponse> undrain(const v1::DrainRequest& request);

  // Has no deadline: following waits for as long as nothing happens.
  std::unique_ptr<EventStream> watch(const v1::WatchEventsRequest& request);

 private:
  struct Connection;

  AdminClient(std::string address, Duration timeout, std::unique_ptr<Connection> connection);

  template <class Response, class Request, class Method>
  Answer<Response> unary(Method method, const Request& request);

  std::string address_;
  Duration timeout_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace berth::ctl
