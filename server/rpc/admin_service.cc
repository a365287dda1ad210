// Views, the event stream and the check. Actions are in admin_actions.cc, policies in
// admin_policy.cc, Explain in explain.cc.
#include "server/rpc/admin_service.h"

#include "server/directory/invariants.h"
#include "server/rpc/resident_memory.h"
#include "server/rpc/unary_call.h"
#include "server/rpc/watch_reactor.h"

namespace berth::rpc {
ViewContext AdminService::context(const DirectoryView& view) const {
  return {*view, backend_.sequencer.config().directory, backend_.sequencer.now()};
}

template <class Request, class Response>
AdminService::Unary* AdminService::list_call(Context* call, const Request* request,
                                             Response* response) {
  const auto listed = [&] {
    const auto view = backend_.sequencer.view();
    return list(context(view), *request, response);
  }();
  return finished(call, listed);
}

AdminService::Unary* AdminService::GetStatus(Context* call, const v1::GetStatusRequest*,
                                             v1::GetStatusResponse* response) {
  const ServerHealth::Snapshot health = health_.get();
  const SequencerStats stats = backend_.sequencer.stats();
  response->set_version(facts_.version);
  response->set_health(health.health);
  response->set_health_reason(health.reason);
  response->set_uptime_ms(
      static_cast<uint64_t>(backend_.clock.monotonic_millis() - facts_.started_monotonic_millis));
  response->set_started_unix_ms(static_cast<uint64_t>(facts_.started_wall_millis));
  response->set_durability(facts_.durability);
  response->set_state_directory(facts_.state_directory);
  response->set_event_sequence(backend_.sequencer.events().last_sequence());
  response->set_queue_commands(stats.queued);
  response->set_queue_commands_max(backend_.sequencer.config().queue_commands_max);
  response->set_resident_bytes(resident_bytes());
  response->set_stall_ms(stats.stall_millis);
  {
    const auto view = backend_.sequencer.view();
    fill(response, context(view));
  }
  return finished(call, {});
}

AdminService::Unary* AdminService::GetUsage(Context* call, const v1::GetUsageRequest*,
                                            v1::GetUsageResponse* response) {
  {
    const auto view = backend_.sequencer.view();
    fill(response, context(view));
  }
  return finished(call, {});
}

AdminService::Unary* AdminService::ListPools(Context* call, const v1::ListPoolsRequest* request,
                                             v1::ListPoolsResponse* response) {
  return list_call(call, request, response);
}

AdminService::Unary* AdminService::ListSessions(Context* call,
                                                const v1::ListSessionsRequest* request,
                                                v1::ListSessionsResponse* response) {
  return list_call(call, request, response);
}

AdminService::Unary* AdminService::ListNamespaces(Context* call,
                                                  const v1::ListNamespacesRequest* request,
                                                  v1::ListNamespacesResponse* response) {
  return list_call(call, request, response);
}

// Slice by slice, so that the writer and other readers get in between.
AdminService::Unary* AdminService::ListObjects(Context* call, const v1::ListObjectsRequest* request,
                                               v1::ListObjectsResponse* response) {
  const auto listed = [&]() -> Result<> {
    ObjectScan scan;
    {
      const auto view = backend_.sequencer.view();
      const auto begun = begin_scan(context(view), *request);
      if (!begun) return tl::unexpected(begun.error());
      scan = *begun;
    }
    for (bool is_over = false; !is_over;) {
      const auto view = backend_.sequencer.view();
      scan_slice(context(view), *request, scan, response);
      is_over = scan.is_over(*view);
    }
    return {};
  }();
  return finished(call, listed);
}

AdminService::Unary* AdminService::InspectObject(Context* call,
                                                 const v1::InspectObjectRequest* request,
                                                 v1::InspectObjectResponse* response) {
  const auto inspected = [&]() -> Result<> {
    {
      const auto view = backend_.sequencer.view();
      if (auto found = inspect(context(view), *request, response); !found) return found;
    }
    LeaseId after;
    do {
      const auto view = backend_.sequencer.view();
      after = find_leases_slice(context(view), after, response);
    } while (after.valid());
    return {};
  }();
  return finished(call, inspected);
}

AdminService::Unary* AdminService::ListLeases(Context* call, const v1::ListLeasesRequest* request,
                                              v1::ListLeasesResponse* response) {
  return list_call(call, request, response);
}

AdminService::Unary* AdminService::ListReservations(Context* call,
                                                    const v1::ListReservationsRequest* request,
                                                    v1::ListReservationsResponse* response) {
  return list_call(call, request, response);
}

AdminService::Unary* AdminService::ListPins(Context* call, const v1::ListPinsRequest* request,
                                            v1::ListPinsResponse* response) {
  return list_call(call, request, response);
}

AdminService::Unary* AdminService::ListJobs(Context* call, const v1::ListJobsRequest*,
                                            v1::ListJobsResponse* response) {
  {
    const auto view = backend_.sequencer.view();
    list(context(view), response);
  }
  return finished(call, {});
}

grpc::ServerWriteReactor<v1::WatchEventsResponse>* AdminService::WatchEvents(
    Context*, const v1::WatchEventsRequest* request) {
  return WatchReactor::start(backend_, *request);
}

// One at a time: each keeps the writer waiting and a thread of gRPC busy.
AdminService::Unary* AdminService::Check(Context* call, const v1::CheckRequest*,
                                         v1::CheckResponse* response) {
  if (is_checking_.exchange(true))
    return finished(call,
                    refuse(Reason::kLimitReached, "another check is running; retry after it"));
  const int64_t started = backend_.clock.monotonic_nanos();
  {
    const auto view = backend_.sequencer.view();
    response->set_broken(check_invariants(*view));
    response->set_replicas_checked(view->replicas().size());
  }
  is_checking_ = false;
  response->set_duration_us(
      static_cast<uint64_t>((backend_.clock.monotonic_nanos() - started) / 1000));
  return finished(call, {});
}

}  // namespace berth::rpc
