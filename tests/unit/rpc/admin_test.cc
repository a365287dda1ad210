// Views, actions, events, health and the graceful stop, against a real server.
#include <catch2/catch.hpp>

#include "tests/unit/rpc/raw_call.h"
#include "tests/unit/rpc/server_rig.h"

namespace berth::testing {
namespace {

using Admin = v1::Admin::Stub;
using Catch::Contains;

// Stores `chunks` chunks of six replicas each; returns the first replica.
uint64_t store(const TestWorker& worker, int chunks) {
  const uint64_t first = worker.store(1, 'a');
  for (int i = 1; i < chunks; ++i)
    worker.store(static_cast<uint64_t>(2 * i + 1), static_cast<char>('a' + i));
  return first;
}

uint64_t hold(ServerRig& server, TestWorker& worker, uint64_t operation, char digest) {
  const auto acquire = from(worker, worker.acquire(operation, std::string(16, digest)));
  return call(*server.directory, &v1::Directory::Stub::Acquire, acquire)->lease();
}

}  // namespace

TEST_CASE("status and usage add up", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  store(worker, 3);
  const auto status = call(*server.admin, &Admin::GetStatus, v1::GetStatusRequest());
  REQUIRE(status);
  CHECK(status->health() == v1::HEALTH_SERVING);
  CHECK(status->replicas() == 18);
  CHECK(status->objects() == 18);
  CHECK(status->workers_attached() == 1);
  CHECK(status->clients() == 1);
  CHECK(status->pools() == 1);
  CHECK(status->store().epoch() == 1);
  CHECK(status->resident_bytes() > 0);
  CHECK(status->event_sequence() > 0);

  const auto usage = call(*server.admin, &Admin::GetUsage, v1::GetUsageRequest());
  REQUIRE(usage);
  const auto& pool = usage->pools(0);
  CHECK(pool.state() == v1::POOL_STATE_LIVE);
  CHECK(pool.owner_name() == "w0");
  CHECK(pool.usage().ready_replicas() == 18);
  CHECK(pool.usage().ready_bytes() == 18 * 4000);
  CHECK(pool.usage().ready_allocated_bytes() == 18 * 4096);
  CHECK(pool.usage().allocated_bytes() == 18 * 4096);
  CHECK(usage->nodes(0).node() == "node-a");
  CHECK(usage->nodes(0).backing_bytes() == 1 << 20);
  CHECK(usage->namespaces(0).allocated_bytes() == 18 * 4096);
}

TEST_CASE("objects are listed page by page, each once", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  store(worker, 3);
  v1::ListObjectsRequest request;
  request.set_limit(5);
  std::set<uint64_t> seen;
  size_t rows = 0;
  for (bool more = true; more;) {
    const auto page = call(*server.admin, &Admin::ListObjects, request);
    REQUIRE(page);
    CHECK(page->replicas_size() <= 5);
    for (const auto& row : page->replicas()) {
      seen.insert(row.replica());
      ++rows;
      CHECK(row.state() == v1::REPLICA_STATE_READY);
      CHECK(row.readable());
      CHECK(row.pool_name() == "cpu");
      CHECK(row.digest().size() == 16);
    }
    more = page->more();
    request.set_after(page->next_after());
  }
  CHECK(rows == 18);
  CHECK(seen.size() == 18);
}

TEST_CASE("objects are filtered", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  store(worker, 3);
  const auto count = [&](const v1::ListObjectsRequest& request) {
    return call(*server.admin, &Admin::ListObjects, request)->replicas_size();
  };
  v1::ListObjectsRequest request;
  request.set_digest_prefix("bb");
  CHECK(count(request) == 6);
  request.set_namespace_name("llama");
  request.set_pool(worker.pool);
  request.set_state(v1::REPLICA_STATE_READY);
  CHECK(count(request) == 6);
  request.set_state(v1::REPLICA_STATE_RETIRING);
  CHECK(count(request) == 0);
  request.set_namespace_name("nobody");
  CHECK(call(*server.admin, &Admin::ListObjects, request).error().reason ==
        Reason::kUnknownNamespace);
  v1::ListObjectsRequest greedy;
  greedy.set_limit(10'001);
  CHECK_THAT(call(*server.admin, &Admin::ListObjects, greedy).error().message,
             Contains("limit = 10001") && Contains("1 to 10000"));
}

TEST_CASE("an object is inspected with its leases and reservations", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  const uint64_t first = store(worker, 2);
  const uint64_t lease = hold(server, worker, 90, 'a');
  v1::InspectObjectRequest request;
  request.set_replica(first);
  const auto one = call(*server.admin, &Admin::InspectObject, request);
  REQUIRE(one);
  REQUIRE(one->replicas_size() == 1);
  CHECK(one->replicas(0).leases() == 1);
  REQUIRE(one->leases_size() == 1);
  CHECK(one->leases(0).lease() == lease);
  CHECK(one->leases(0).engine_id() == "engine-0");

  v1::InspectObjectRequest chunk;
  chunk.set_namespace_name("llama");
  chunk.set_digest(std::string(16, 'a'));
  CHECK(call(*server.admin, &Admin::InspectObject, chunk)->replicas_size() == 6);

  const auto reserve = from(worker, worker.reserve(91, 'z'));
  REQUIRE(call(*server.directory, &v1::Directory::Stub::Reserve, reserve));
  chunk.set_digest(std::string(16, 'z'));
  const auto open = call(*server.admin, &Admin::InspectObject, chunk);
  REQUIRE(open->reservations_size() == 1);
  CHECK(open->reservations(0).open_items() == 6);
  CHECK(open->reservations(0).operation() == 91);
  request.set_replica(424242);
  CHECK(call(*server.admin, &Admin::InspectObject, request).error().reason ==
        Reason::kUnknownReplica);
}

TEST_CASE("sessions, leases, reservations and namespaces are listed", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  store(worker, 1);
  for (uint64_t i = 0; i < 3; ++i) hold(server, worker, 50 + i, 'a');
  const auto sessions = call(*server.admin, &Admin::ListSessions, v1::ListSessionsRequest());
  REQUIRE(sessions->sessions_size() == 2);
  CHECK(sessions->sessions(0).state() == v1::SESSION_STATE_ATTACHED);
  CHECK(sessions->sessions(0).pools() == 1);
  CHECK(sessions->sessions(0).heartbeat_age_ms() >= 0);
  CHECK(sessions->sessions(1).worker_name() == "w0");
  CHECK(sessions->sessions(1).leases() == 3);
  CHECK(sessions->sessions(1).heartbeat_age_ms() == -1);

  v1::ListLeasesRequest leases;
  leases.set_limit(2);
  leases.set_session(worker.client);
  const auto page = call(*server.admin, &Admin::ListLeases, leases);
  CHECK(page->leases_size() == 2);
  CHECK(page->more());
  CHECK(page->leases(0).expires_in_ms() > 0);
  leases.set_after(page->leases(1).lease());
  CHECK(call(*server.admin, &Admin::ListLeases, leases)->leases_size() == 1);
  leases.set_session(worker.caller.session());
  leases.set_after(0);
  CHECK(call(*server.admin, &Admin::ListLeases, leases)->leases_size() == 0);

  v1::SetNamespaceQuotaRequest quota;
  quota.set_name("llama");
  quota.set_quota_bytes(1 << 30);
  REQUIRE(call(*server.admin, &Admin::SetNamespaceQuota, quota));
  const auto spaces = call(*server.admin, &Admin::ListNamespaces, v1::ListNamespacesRequest());
  CHECK(spaces->namespaces(0).quota_bytes() == 1 << 30);
  quota.set_name("nobody");
  CHECK(call(*server.admin, &Admin::SetNamespaceQuota, quota).error().reason ==
        Reason::kUnknownNamespace);
}

TEST_CASE("a fence names one thing and a reason", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  v1::FenceRequest fence;
  fence.set_reason("why");
  CHECK(call(*server.admin, &Admin::Fence, fence).error().reason == Reason::kInvalidArgument);
  fence.set_session(worker.caller.session());
  fence.set_node("node-a");
  CHECK(call(*server.admin, &Admin::Fence, fence).error().reason == Reason::kInvalidArgument);
  fence.clear_node();
  fence.clear_reason();
  CHECK_THAT(call(*server.admin, &Admin::Fence, fence).error().message, Contains("reason = \"\""));
}

TEST_CASE("the check finds nothing in a sound directory", "[rpc][admin]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  store(worker, 2);
  const auto checked = call(*server.admin, &Admin::Check, v1::CheckRequest());
  REQUIRE(checked);
  CHECK(checked->broken().empty());
  CHECK(checked->replicas_checked() == 12);
}

TEST_CASE("events are followed from a number, and from now on", "[rpc][events]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  // Everything so far, then the end.
  v1::WatchEventsRequest all;
  all.set_from_sequence(1);
  all.set_epoch(1);
  all.set_stop_at_end(true);
  std::vector<std::string> kinds;
  uint64_t sequence = 0;
  {
    grpc::ClientContext context;
    set_deadline(context, kTestDeadline);
    auto stream = server.admin->WatchEvents(&context, all);
    v1::WatchEventsResponse page;
    while (stream->Read(&page)) {
      CHECK_FALSE(page.gap());
      for (const auto& event : page.events()) {
        CHECK(event.sequence() == ++sequence);
        kinds.push_back(event.kind());
      }
    }
    CHECK(stream->Finish().ok());
  }
  CHECK(kinds.front() == "server_started");
  CHECK(std::count(kinds.begin(), kinds.end(), "pool_registered") == 1);

  // From now on: only what comes after the answer's headers.
  grpc::ClientContext context;
  set_deadline(context, kTestDeadline);
  auto stream = server.admin->WatchEvents(&context, v1::WatchEventsRequest());
  stream->WaitForInitialMetadata();
  store(worker, 1);
  v1::WatchEventsResponse page;
  bool saw_ready = false;
  while (!saw_ready && stream->Read(&page))
    for (const auto& event : page.events()) {
      CHECK(event.sequence() > sequence);
      saw_ready = saw_ready || event.kind() == "ready";
    }
  CHECK(saw_ready);
  context.TryCancel();
  stream->Finish();
}

TEST_CASE("a watcher of another epoch is told of the gap", "[rpc][events]") {
  ServerRig server;
  v1::WatchEventsRequest stale;
  stale.set_from_sequence(7);
  stale.set_epoch(900);
  stale.set_stop_at_end(true);
  grpc::ClientContext context;
  set_deadline(context, kTestDeadline);
  auto stream = server.admin->WatchEvents(&context, stale);
  v1::WatchEventsResponse page;
  REQUIRE(stream->Read(&page));
  CHECK(page.gap());
  CHECK(page.epoch() == 1);
}

TEST_CASE("health follows the server", "[rpc][health]") {
  ServerRig server;
  // HealthCheckResponse{status}: field 1, 1 for SERVING, 2 for NOT_SERVING. No service named: all.
  const auto health = [&] { return raw_call(server.channel, "/grpc.health.v1.Health/Check", ""); };
  CHECK(health() == "\x08\x01");
  server.health->set_degraded("disk full");
  CHECK(health() == "\x08\x02");
  CHECK(call(*server.admin, &Admin::GetStatus, v1::GetStatusRequest())->health_reason() ==
        "store_degraded: disk full");
  server.health->set_serving();
  CHECK(health() == "\x08\x01");
}

TEST_CASE("reflection lists the services", "[rpc][health]") {
  ServerRig server;
  // ServerReflectionRequest{list_services: ""}.
  const std::string listed =
      raw_call(server.channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
               std::string("\x3a\x00", 2));
  CHECK_THAT(listed, Contains("berth.v1.Directory") && Contains("berth.v1.Admin") &&
                         Contains("grpc.health.v1.Health"));
}

TEST_CASE("the stop ends open streams and answers with unavailable", "[rpc][stop]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  grpc::ClientContext watching;
  set_deadline(watching, kTestDeadline);
  auto watch = server.admin->WatchEvents(&watching, v1::WatchEventsRequest());
  watch->WaitForInitialMetadata();
  grpc::ClientContext reattaching;
  set_deadline(reattaching, kTestDeadline);
  auto reattach = server.directory->Reattach(&reattaching);
  v1::ReattachRequest hello;
  *hello.mutable_hello()->mutable_caller() = TestWorker(server, "w1").caller;
  hello.mutable_hello()->set_boot_id(std::string(16, 'b'));
  v1::ReattachResponse welcome;
  REQUIRE(reattach->Write(hello));
  REQUIRE(reattach->Read(&welcome));
  CHECK(server.endpoint->stream_count() == 3);

  server.stop();

  v1::WatchEventsResponse page;
  while (watch->Read(&page)) continue;
  CHECK(error_from_status(watch->Finish()).reason == Reason::kUnavailable);
  CHECK_FALSE(reattach->Read(&welcome));
  CHECK(error_from_status(reattach->Finish()).reason == Reason::kUnavailable);
  CHECK(worker.link->ended().reason == Reason::kUnavailable);
}

}  // namespace berth::testing
