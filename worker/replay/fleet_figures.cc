#include "worker/replay/fleet_figures.h"

#include "berth/v1/admin.grpc.pb.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"

namespace berth::replay {
namespace {

// A check walks everything that the server holds.
constexpr Duration kWithin = seconds(60);

template <class Request, class Response>
Result<Response> call(v1::Admin::Stub& stub,
                      grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*)) {
  grpc::ClientContext context;
  set_deadline(context, kWithin);
  context.set_wait_for_ready(true);
  Response response;
  const grpc::Status status = (stub.*method)(&context, Request(), &response);
  if (!status.ok()) return tl::unexpected(error_from_status(status));
  return response;
}

}  // namespace

Result<FleetFigures> ask_fleet(const std::string& text) {
  const auto address = parse_address("berthd", text);
  if (!address) return tl::unexpected(address.error());
  const auto channel = make_channel("berthd", *address, {.own_connection = true});
  if (!channel) return tl::unexpected(channel.error());
  const auto stub = v1::Admin::NewStub(*channel);
  const auto checked = call(*stub, &v1::Admin::Stub::Check);
  if (!checked) return tl::unexpected(checked.error());
  const auto policy = call(*stub, &v1::Admin::Stub::GetPolicy);
  if (!policy) return tl::unexpected(policy.error());
  FleetFigures figures;
  figures.broken = checked->broken();
  figures.policy = policy->policy().policy();
  figures.eviction_slices = policy->slices();
  figures.evicted_replicas = policy->evicted_replicas();
  figures.slice_replicas_max = policy->slice_replicas_max();
  figures.slice_micros_max = policy->slice_us_max();
  figures.nothing_evictable = policy->nothing_evictable();
  return figures;
}

}  // namespace berth::replay
