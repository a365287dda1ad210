// An Admin service that answers what a test put into it, on a unix socket of its own, and berthctl
// run against it in this process. The real service is tested with real servers elsewhere; here it
// matters what berthctl makes of an answer.
#pragma once

#include <grpcpp/server.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "berth/v1/admin.grpc.pb.h"
#include "common/error.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth::ctl {

// Held while either side touches what a test and its service share. gRPC orders those accesses too,
// but through a library that the thread sanitizer cannot look into.
std::mutex& shared_mutex();

// One call of WatchEvents: what it asks is recorded, these are its answers and its end.
struct WatchScript {
  std::vector<v1::WatchEventsResponse> answers;
  grpc::Status end = grpc::Status::OK;
};

class FakeAdmin final : public v1::Admin::Service {
 public:
  v1::GetStatusResponse status;
  v1::GetUsageResponse usage;
  std::vector<v1::PoolRow> pools;
  std::vector<v1::SessionRow> sessions;
  std::vector<v1::NamespaceRow> namespaces;
  std::vector<v1::ReplicaRow> replicas;
  std::vector<v1::LeaseRow> leases;
  std::vector<v1::ReservationRow> reservations;
  std::vector<v1::JobRow> jobs;
  v1::CheckResponse check;
  v1::FenceResponse fence;
  std::vector<v1::PinRow> pins;
  v1::GetPolicyResponse policy;
  v1::ExplainResponse explanation;
  v1::DrainResponse drained;
  uint64_t job = 0;
  // The column that Evict (of chunks) and Pin answer.
  std::string codes;
  // Ids that Evict retires.
  std::vector<uint64_t> evictable;
  std::deque<WatchScript> watches;
  // Every call ends with it.
  std::optional<grpc::Status> refusal;
  // What berthctl sent, as text: "ListObjects limit: 100".
  std::vector<std::string> seen;
  // Rows of a page, whatever the limit.
  size_t page_rows_max = 10'000;

 private:
  template <class Request, class Answer>
  grpc::Status answer(const char* method, const Request& request, Answer act) {
    const std::lock_guard lock(shared_mutex());
    seen.push_back(std::string(method) + " " + request.ShortDebugString());
    if (refusal) return *refusal;
    act();
    return grpc::Status::OK;
  }

  template <class Request, class Row, class IdOf, class Add>
  bool page(const Request& request, const std::vector<Row>& rows, IdOf id_of, Add add) {
    size_t added = 0;
    for (const Row& row : rows) {
      if (id_of(row) <= request.after()) continue;
      if (added == request.limit() || added == page_rows_max) return true;
      add(row);
      ++added;
    }
    return false;
  }

  WatchScript next_watch(const v1::WatchEventsRequest& request);

  using Context = grpc::ServerContext;

  grpc::Status GetStatus(Context*, const v1::GetStatusRequest* request,
                         v1::GetStatusResponse* response) override {
    return answer("GetStatus", *request, [&] { *response = status; });
  }
  grpc::Status GetUsage(Context*, const v1::GetUsageRequest* request,
                        v1::GetUsageResponse* response) override {
    return answer("GetUsage", *request, [&] { *response = usage; });
  }
  grpc::Status ListPools(Context*, const v1::ListPoolsRequest* request,
                         v1::ListPoolsResponse* response) override {
    return answer("ListPools", *request, [&] {
      response->set_more(page(
          *request, pools, [](auto& row) { return row.pool(); },
          [&](auto& row) { *response->add_pools() = row; }));
    });
  }
  grpc::Status ListSessions(Context*, const v1::ListSessionsRequest* request,
                            v1::ListSessionsResponse* response) override {
    return answer("ListSessions", *request, [&] {
      response->set_more(page(
          *request, sessions, [](auto& row) { return row.session(); },
          [&](auto& row) { *response->add_sessions() = row; }));
    });
  }
  grpc::Status ListNamespaces(Context*, const v1::ListNamespacesRequest* request,
                              v1::ListNamespacesResponse* response) override {
    return answer("ListNamespaces", *request, [&] {
      response->set_more(page(
          *request, namespaces, [](auto& row) { return row.namespace_id(); },
          [&](auto& row) { *response->add_namespaces() = row; }));
    });
  }
  grpc::Status ListObjects(Context*, const v1::ListObjectsRequest* request,
                           v1::ListObjectsResponse* response) override {
    return answer("ListObjects", *request, [&] {
      response->set_more(page(
          *request, replicas, [](auto& row) { return row.replica(); },
          [&](auto& row) {
            *response->add_replicas() = row;
            response->set_next_after(row.replica());
          }));
    });
  }
  grpc::Status InspectObject(Context*, const v1::InspectObjectRequest* request,
                             v1::InspectObjectResponse* response) override {
    return answer("InspectObject", *request, [&] {
      *response->mutable_replicas() = {replicas.begin(), replicas.end()};
      *response->mutable_leases() = {leases.begin(), leases.end()};
    });
  }
  grpc::Status ListLeases(Context*, const v1::ListLeasesRequest* request,
                          v1::ListLeasesResponse* response) override {
    return answer("ListLeases", *request, [&] {
      response->set_more(page(
          *request, leases, [](auto& row) { return row.lease(); },
          [&](auto& row) { *response->add_leases() = row; }));
    });
  }
  grpc::Status ListReservations(Context*, const v1::ListReservationsRequest* request,
                                v1::ListReservationsResponse* response) override {
    return answer("ListReservations", *request, [&] {
      response->set_more(page(
          *request, reservations, [](auto& row) { return row.first_replica(); },
          [&](auto& row) { *response->add_reservations() = row; }));
    });
  }
  grpc::Status ListJobs(Context*, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override {
    return answer("ListJobs", *request, [&] {
      *response->mutable_jobs() = {jobs.begin(), jobs.end()};
    });
  }
  grpc::Status Check(Context*, const v1::CheckRequest* request,
                     v1::CheckResponse* response) override {
    return answer("Check", *request, [&] { *response = check; });
  }
  grpc::Status Fence(Context*, const v1::FenceRequest* request,
                     v1::FenceResponse* response) override {
    return answer("Fence", *request, [&] { *response = fence; });
  }
  grpc::Status Evict(Context*, const v1::EvictRequest* request,
                     v1::EvictResponse* response) override {
    return answer("Evict", *request, [&] {
      if (request->replicas().empty()) response->set_retired(codes);
      for (const uint64_t replica : request->replicas()) {
        const bool retired =
            std::find(evictable.begin(), evictable.end(), replica) != evictable.end();
        response->mutable_retired()->push_back(retired ? 1 : 0);
      }
    });
  }
  grpc::Status EvictNamespace(Context*, const v1::EvictNamespaceRequest* request,
                              v1::JobResponse* response) override {
    return answer("EvictNamespace", *request, [&] { response->set_job(job); });
  }
  grpc::Status TrimPool(Context*, const v1::TrimPoolRequest* request,
                        v1::JobResponse* response) override {
    return answer("TrimPool", *request, [&] { response->set_job(job); });
  }
  grpc::Status Drain(Context*, const v1::DrainRequest* request,
                     v1::DrainResponse* response) override {
    return answer("Drain", *request, [&] { *response = drained; });
  }
  grpc::Status Undrain(Context*, const v1::DrainRequest* request,
                       v1::DrainResponse* response) override {
    return answer("Undrain", *request, [&] { *response = drained; });
  }
  grpc::Status Pin(Context*, const v1::PinRequest* request, v1::PinResponse* response) override {
    return answer("Pin", *request, [&] { response->set_pinned(codes); });
  }
  grpc::Status Unpin(Context*, const v1::UnpinRequest* request,
                     v1::UnpinResponse* response) override {
    return answer("Unpin", *request, [&] { response->set_unpinned(std::string(1, '\1')); });
  }
  grpc::Status ListPins(Context*, const v1::ListPinsRequest* request,
                        v1::ListPinsResponse* response) override {
    return answer("ListPins", *request, [&] {
      response->set_more(page(
          *request, pins, [](auto& row) { return row.replica(); },
          [&](auto& row) { *response->add_pins() = row; }));
    });
  }
  grpc::Status GetPolicy(Context*, const v1::GetPolicyRequest* request,
                         v1::GetPolicyResponse* response) override {
    return answer("GetPolicy", *request, [&] { *response = policy; });
  }
  grpc::Status SetPolicy(Context*, const v1::SetPolicyRequest* request,
                         v1::SetPolicyResponse* response) override {
    return answer("SetPolicy", *request, [&] { *response->mutable_policy() = policy.policy(); });
  }
  grpc::Status Explain(Context*, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override {
    return answer("Explain", *request, [&] { *response = explanation; });
  }
  grpc::Status SetNamespaceQuota(Context*, const v1::SetNamespaceQuotaRequest* request,
                                 v1::SetNamespaceQuotaResponse*) override {
    return answer("SetNamespaceQuota", *request, [] {});
  }
  grpc::Status WatchEvents(Context*, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::WatchEventsResponse>* writer) override;
};

class FakeServer {
 public:
  FakeServer() { start(); }
  ~FakeServer() { stop(); }

  void start();
  // The socket goes away, as when the server's process dies.
  void stop();
  std::string address() const { return "unix:" + directory_.path() + "/berthd.sock"; }

  FakeAdmin admin;

 private:
  testing::TemporaryDirectory directory_;
  std::unique_ptr<grpc::Server> server_;
};

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// What a test may change about where berthctl runs.
struct Place {
  bool terminal = false;
  bool colour = false;
  size_t columns = 0;
  size_t rows = 0;
  std::optional<std::string> berth_server;
  // Called instead of waiting; false ends a watch.
  std::function<bool()> wait = [] { return false; };
};

Ran run_berthctl(std::vector<std::string> arguments, const Place& place = {});
// The same with --server.
Ran run_against(const FakeServer& server, std::vector<std::string> arguments,
                const Place& place = {});

// Id `counter` of epoch 3: "e3-<counter>".
uint64_t id3(uint64_t counter);

}  // namespace berth::ctl
