#include "tests/integration/admin.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "berth/v1/admin.grpc.pb.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"

namespace berth::testing {
namespace {

constexpr Duration kCallWithin = seconds(10);
constexpr Duration kTryWithin = milliseconds(500);
constexpr uint32_t kRowsMax = 10000;

}  // namespace

struct Admin::Stub {
  std::unique_ptr<v1::Admin::Stub> calls;

  template <class Request, class Response>
  using Method = grpc::Status (v1::Admin::Stub::*)(grpc::ClientContext*, const Request&, Response*);

  template <class Request, class Response>
  grpc::Status attempt(Method<Request, Response> method, const Request& request, Response* response,
                       Duration within) {
    grpc::ClientContext context;
    set_deadline(context, within);
    // A call that fails at once polls nothing, so that the connection would not get through.
    context.set_wait_for_ready(true);
    return (calls.get()->*method)(&context, request, response);
  }

  template <class Request, class Response>
  Response call(Method<Request, Response> method, const Request& request) {
    Response response;
    const grpc::Status status = attempt(method, request, &response, kCallWithin);
    INFO(Request::descriptor()->name() << ": " << status.error_message());
    REQUIRE(status.ok());
    return response;
  }

  template <class Request, class Response>
  std::optional<Response> attempt_call(Method<Request, Response> method,
                                       const Request& request = {}) {
    Response response;
    if (!attempt(method, request, &response, kTryWithin).ok()) return std::nullopt;
    return response;
  }
};

Admin::Admin(const std::string& address) : stub_(std::make_unique<Stub>()) {
  const auto parsed = parse_address("address", address);
  REQUIRE(parsed);
  // A connection of its own: it must not inherit the back-off of an earlier server's.
  auto channel = make_channel("address", *parsed, {.own_connection = true});
  REQUIRE(channel);
  stub_->calls = v1::Admin::NewStub(*channel);
}
Admin::~Admin() = default;

std::optional<v1::GetStatusResponse> Admin::try_status() {
  return stub_->attempt_call<v1::GetStatusRequest>(&v1::Admin::Stub::GetStatus);
}

std::optional<v1::GetUsageResponse> Admin::try_usage() {
  return stub_->attempt_call<v1::GetUsageRequest>(&v1::Admin::Stub::GetUsage);
}

bool Admin::is_serving() {
  const auto now = try_status();
  return now && now->health() == v1::HEALTH_SERVING;
}

v1::GetStatusResponse Admin::status() {
  return stub_->call(&v1::Admin::Stub::GetStatus, v1::GetStatusRequest());
}

v1::GetUsageResponse Admin::usage() {
  return stub_->call(&v1::Admin::Stub::GetUsage, v1::GetUsageRequest());
}

v1::PoolRow Admin::pool(const std::string& name) {
  const v1::GetUsageResponse now = usage();
  const auto found = std::find_if(now.pools().begin(), now.pools().end(), [&](const auto& row) {
    return row.spec().name() == name && row.state() != v1::POOL_STATE_GONE;
  });
  INFO("pools: " << now.ShortDebugString());
  REQUIRE(found != now.pools().end());
  return *found;
}

std::vector<v1::SessionRow> Admin::sessions() {
  v1::ListSessionsRequest request;
  request.set_limit(kRowsMax);
  const auto rows = stub_->call(&v1::Admin::Stub::ListSessions, request);
  return {rows.sessions().begin(), rows.sessions().end()};
}

std::optional<v1::SessionRow> Admin::session(const std::string& name) {
  for (const v1::SessionRow& row : sessions())
    if (row.name() == name) return row;
  return std::nullopt;
}

std::vector<v1::ReservationRow> Admin::reservations() {
  v1::ListReservationsRequest request;
  request.set_limit(kRowsMax);
  const auto rows = stub_->call(&v1::Admin::Stub::ListReservations, request);
  return {rows.reservations().begin(), rows.reservations().end()};
}

std::vector<v1::LeaseRow> Admin::leases() {
  v1::ListLeasesRequest request;
  request.set_limit(kRowsMax);
  const auto rows = stub_->call(&v1::Admin::Stub::ListLeases, request);
  return {rows.leases().begin(), rows.leases().end()};
}

std::vector<v1::ReplicaRow> Admin::objects(v1::ReplicaState state) {
  v1::ListObjectsRequest request;
  request.set_limit(kRowsMax);
  request.set_state(state);
  std::vector<v1::ReplicaRow> all;
  for (bool more = true; more;) {
    const auto page = stub_->call(&v1::Admin::Stub::ListObjects, request);
    all.insert(all.end(), page.replicas().begin(), page.replicas().end());
    request.set_after(page.next_after());
    more = page.more();
  }
  return all;
}

std::vector<v1::Event> Admin::events(uint64_t from) {
  v1::WatchEventsRequest request;
  request.set_from_sequence(from);
  request.set_epoch(status().store().epoch());
  request.set_stop_at_end(true);
  grpc::ClientContext context;
  set_deadline(context, kCallWithin);
  const auto stream = stub_->calls->WatchEvents(&context, request);
  std::vector<v1::Event> all;
  for (v1::WatchEventsResponse part; stream->Read(&part);)
    all.insert(all.end(), part.events().begin(), part.events().end());
  REQUIRE(stream->Finish().ok());
  return all;
}

uint64_t Admin::count_events(const std::string& kind) {
  const auto all = events();
  return static_cast<uint64_t>(std::count_if(
      all.begin(), all.end(), [&](const v1::Event& event) { return event.kind() == kind; }));
}

namespace {

struct OpenWatch final : IdleWatch {
  ~OpenWatch() override { context.TryCancel(); }
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReader<v1::WatchEventsResponse>> stream;
};

}  // namespace

std::unique_ptr<IdleWatch> Admin::watch_idly() {
  auto watch = std::make_unique<OpenWatch>();
  v1::WatchEventsRequest request;
  request.set_from_sequence(1);
  request.set_epoch(status().store().epoch());
  watch->context.set_wait_for_ready(true);
  watch->stream = stub_->calls->WatchEvents(&watch->context, request);
  v1::WatchEventsResponse first;
  const bool is_open = watch->stream->Read(&first);
  INFO((is_open ? "" : watch->stream->Finish().error_message()));
  REQUIRE(is_open);
  return watch;
}

std::string Admin::check() {
  return stub_->call(&v1::Admin::Stub::Check, v1::CheckRequest()).broken();
}

uint64_t Admin::evict(const std::vector<uint64_t>& replicas) {
  v1::EvictRequest request;
  request.mutable_replicas()->Add(replicas.begin(), replicas.end());
  const auto response = stub_->call(&v1::Admin::Stub::Evict, request);
  return static_cast<uint64_t>(
      std::count(response.retired().begin(), response.retired().end(), '\1'));
}

void Admin::evict_namespace(const std::string& name) {
  v1::EvictNamespaceRequest request;
  request.set_name(name);
  stub_->call(&v1::Admin::Stub::EvictNamespace, request);
}

void Admin::drain(const std::string& pool_name) {
  v1::DrainRequest request;
  request.set_pool(pool(pool_name).pool());
  stub_->call(&v1::Admin::Stub::Drain, request);
}

void Admin::undrain(const std::string& pool_name) {
  v1::DrainRequest request;
  request.set_pool(pool(pool_name).pool());
  stub_->call(&v1::Admin::Stub::Undrain, request);
}

bool Admin::try_evict_namespace(const std::string& name) {
  v1::EvictNamespaceRequest request;
  request.set_name(name);
  return stub_->attempt_call(&v1::Admin::Stub::EvictNamespace, request).has_value();
}

bool Admin::try_drain(uint64_t pool) {
  v1::DrainRequest request;
  request.set_pool(pool);
  return stub_->attempt_call(&v1::Admin::Stub::Drain, request).has_value();
}

bool Admin::try_undrain(uint64_t pool) {
  v1::DrainRequest request;
  request.set_pool(pool);
  return stub_->attempt_call(&v1::Admin::Stub::Undrain, request).has_value();
}

std::vector<v1::JobRow> Admin::jobs() {
  const auto rows = stub_->call(&v1::Admin::Stub::ListJobs, v1::ListJobsRequest());
  return {rows.jobs().begin(), rows.jobs().end()};
}

bool Admin::try_evict_one_of(uint64_t share) {
  v1::ListObjectsRequest list;
  list.set_limit(kRowsMax);
  list.set_state(v1::REPLICA_STATE_READY);
  const auto ready = stub_->attempt_call(&v1::Admin::Stub::ListObjects, list);
  if (!ready) return false;
  v1::EvictRequest evict;
  for (const v1::ReplicaRow& row : ready->replicas())
    if (row.replica() % share == 0) evict.add_replicas(row.replica());
  return evict.replicas().empty() ||
         stub_->attempt_call(&v1::Admin::Stub::Evict, evict).has_value();
}

}  // namespace berth::testing
