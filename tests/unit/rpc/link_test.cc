// Link against a real server: order, refusals, takeover, bounds and ends.
#include <catch2/catch.hpp>
#include <future>

#include "tests/unit/rpc/server_rig.h"

namespace berth::testing {
namespace {

using Catch::Contains;

v1::LinkRequest with(v1::ReserveRequest request) {
  v1::LinkRequest message;
  *message.mutable_reserve() = std::move(request);
  return message;
}
v1::LinkRequest with(v1::CommitRequest request) {
  v1::LinkRequest message;
  *message.mutable_commit() = std::move(request);
  return message;
}
v1::LinkRequest with(v1::AcquireRequest request) {
  v1::LinkRequest message;
  *message.mutable_acquire() = std::move(request);
  return message;
}
v1::LinkRequest with(v1::ProbeRequest request) {
  v1::LinkRequest message;
  *message.mutable_probe() = std::move(request);
  return message;
}

const std::string kChunk(16, 'k');

Reason reason_of(const v1::LinkResponse& response) {
  REQUIRE(response.has_error());
  return error_from_details(response.error()).reason;
}

}  // namespace

TEST_CASE("what is stored over a Link is found, read and given back", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  TestLink& link = *worker.link;
  CHECK(link.ask(with(worker.probe(kChunk))).probe().miss_reason() == v1::MISS_REASON_NOT_PRESENT);

  const auto reserved = link.ask(with(worker.reserve(1, 'k'))).reserve();
  CHECK(reserved.codes() == std::string(6, v1::STORE_CODE_GRANTED));
  CHECK(link.ask(with(worker.probe(kChunk))).probe().usable_chunks() == 0);
  const auto committed = link.ask(with(worker.commit(2, reserved.first_replica()))).commit();
  CHECK(committed.codes() == std::string(6, v1::COMMIT_CODE_COMMITTED));
  const auto probed = link.ask(with(worker.probe(kChunk))).probe();
  CHECK(probed.usable_chunks() == 1);
  CHECK(probed.classes() == std::string(1, v1::CHUNK_CLASS_L1_LOCAL));

  const auto acquired = link.ask(with(worker.acquire(3, kChunk))).acquire();
  CHECK(acquired.chunks() == 1);
  CHECK(acquired.replicas_size() == 6);
  CHECK(acquired.pools(0) == worker.pool);
  CHECK(acquired.sizes(5) == 4000);
  v1::LinkRequest release;
  release.mutable_release()->set_client_session(worker.client);
  release.mutable_release()->add_leases(acquired.lease());
  CHECK(link.ask(release).release().released() == std::string(1, '\1'));
  CHECK(link.ask(release).release().released() == std::string(1, '\0'));
}

TEST_CASE("an operation number is done once and its answer repeated", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  TestLink& link = *worker.link;
  const auto first = link.ask(with(worker.reserve(1, 'k'))).reserve();
  const auto again = link.ask(with(worker.reserve(1, 'k'))).reserve();
  CHECK(again.SerializeAsString() == first.SerializeAsString());
  CHECK(reason_of(link.ask(with(worker.reserve(1, 'z')))) == Reason::kOperationMismatch);

  // The same operation as a unary call is the same operation.
  const auto unary = from(worker, worker.reserve(1, 'k'));
  const auto elsewhere = call(*server.directory, &v1::Directory::Stub::Reserve, unary);
  REQUIRE(elsewhere);
  CHECK(elsewhere->SerializeAsString() == first.SerializeAsString());

  v1::LinkRequest resolve;
  resolve.mutable_resolve()->set_client_session(worker.client);
  resolve.mutable_resolve()->set_operation(1);
  const auto resolved = link.ask(resolve).resolve();
  CHECK(resolved.outcome() == v1::ResolveResponse::OUTCOME_COMMITTED);
  CHECK(resolved.reserve().first_replica() == first.first_replica());
  resolve.mutable_resolve()->set_operation(9);
  CHECK(link.ask(resolve).resolve().outcome() == v1::ResolveResponse::OUTCOME_UNKNOWN);
}

TEST_CASE("messages of one Link are applied in the order sent", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  TestLink& link = *worker.link;
  const auto reserved = link.ask(with(worker.reserve(1, 'k'))).reserve();
  // Commit and acquire without waiting for the first answer.
  auto commit = with(worker.commit(2, reserved.first_replica()));
  auto acquire = with(worker.acquire(3, kChunk));
  commit.set_correlation(501);
  acquire.set_correlation(502);
  REQUIRE(link.stream->Write(commit));
  REQUIRE(link.stream->Write(acquire));
  const auto answer = link.read_until([](const auto& m) { return m.correlation() == 502; });
  CHECK(answer.acquire().chunks() == 1);
}

TEST_CASE("a request that makes no sense is refused and the Link goes on", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  auto odd = worker.reserve(1, 'k');
  odd.mutable_digests()->resize(15);
  const auto refused = worker.link->ask(with(odd));
  CHECK(reason_of(refused) == Reason::kInvalidArgument);
  CHECK_THAT(refused.error().message(), Contains("digests = 15 bytes"));
  v1::LinkRequest heartbeat;
  heartbeat.mutable_heartbeat()->set_sequence(41);
  REQUIRE(worker.link->stream->Write(heartbeat));
  const auto seen = worker.link->read_until([](const auto& m) { return m.has_heartbeat_seen(); });
  CHECK(seen.heartbeat_seen().sequence() == 41);
}

TEST_CASE("a Link without a right hello ends at once", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.reattach();
  {
    v1::Caller stranger = worker.caller;
    stranger.set_token(std::string(16, 'x'));
    CHECK(TestLink(*server.directory, stranger).ended().reason == Reason::kWrongToken);
  }
  {
    v1::Caller stale = worker.caller;
    stale.set_incarnation(stale.incarnation() - 1);
    CHECK(TestLink(*server.directory, stale).ended().reason == Reason::kStaleIncarnation);
  }
  grpc::ClientContext context;
  set_deadline(context, kTestDeadline);
  auto stream = server.directory->Link(&context);
  v1::LinkRequest heartbeat;
  heartbeat.mutable_heartbeat();
  stream->Write(heartbeat);
  v1::LinkResponse message;
  CHECK_FALSE(stream->Read(&message));
  CHECK(error_from_status(stream->Finish()).reason == Reason::kInvalidArgument);
}

TEST_CASE("a Link before the ledger was stated is refused", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  CHECK(TestLink(*server.directory, worker.caller).ended().reason == Reason::kReattaching);
  // And leaves nothing behind that stands in the way of the right one.
  worker.attach();
}

TEST_CASE("a re-attach ends the Link of the incarnation before it", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  const auto older = std::move(worker.link);
  worker.attach();
  CHECK(older->ended().reason == Reason::kStaleIncarnation);
  // The end of the old one does not detach the session.
  CHECK(worker.link->ask(with(worker.reserve(1, 'k'))).has_reserve());
}

TEST_CASE("one incarnation has one Link", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  CHECK(TestLink(*server.directory, worker.caller).ended().reason == Reason::kStaleIncarnation);
  CHECK(worker.link->ask(with(worker.reserve(1, 'k'))).has_reserve());
}

TEST_CASE("a Link that ends leaves the session detached", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  worker.link->stream->WritesDone();
  CHECK(worker.link->stream->Finish().ok());
  // Nothing is accepted under that incarnation without a Link; the stream's end was installed
  // before this call is decided, because both came through the same queue.
  const auto reserve = from(worker, worker.reserve(1, 'k'));
  const auto refused = call(*server.directory, &v1::Directory::Stub::Reserve, reserve);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kReattaching);
  worker.attach();
}

TEST_CASE("a fence ends the worker's Link", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  v1::FenceRequest fence;
  fence.set_session(worker.caller.session());
  fence.set_reason("its host burned");
  const auto fenced = call(*server.admin, &v1::Admin::Stub::Fence, fence);
  REQUIRE(fenced);
  CHECK(fenced->sessions_size() == 1);
  CHECK(worker.link->ended().reason == Reason::kSessionFenced);
}

TEST_CASE("the worker is told when its client is fenced", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  v1::FenceRequest fence;
  fence.set_session(worker.client);
  fence.set_reason("stuck");
  REQUIRE(call(*server.admin, &v1::Admin::Stub::Fence, fence));
  const auto told = worker.link->read_until([](const auto& m) { return m.has_client_fenced(); });
  CHECK(told.client_fenced().client_session() == worker.client);
}

TEST_CASE("an eviction asks the owner to reclaim", "[rpc][link]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  TestLink& link = *worker.link;
  const auto first = link.ask(with(worker.reserve(1, 'k'))).reserve().first_replica();
  link.ask(with(worker.commit(2, first)));
  v1::EvictRequest evict;
  for (uint64_t i = 0; i < 6; ++i) evict.add_replicas(first + i);
  const auto evicted = call(*server.admin, &v1::Admin::Stub::Evict, evict);
  REQUIRE(evicted);
  CHECK(evicted->retired() == std::string(6, '\1'));
  v1::LinkRequest ack;
  auto& reclaimed = *ack.mutable_reclaim_ack()->mutable_replicas();
  while (reclaimed.size() < 6)
    reclaimed.MergeFrom(
        link.read_until([](const auto& m) { return m.has_reclaim(); }).reclaim().replicas());
  CHECK(reclaimed.size() == 6);
  REQUIRE(link.stream->Write(ack));
  // Freed: the next request, applied after the ACK, finds the key free again.
  CHECK(link.ask(with(worker.reserve(3, 'k'))).reserve().codes()[0] == v1::STORE_CODE_GRANTED);
  const auto usage = call(*server.admin, &v1::Admin::Stub::GetUsage, v1::GetUsageRequest());
  CHECK(usage->pools(0).usage().retiring_bytes() == 0);
}

TEST_CASE("a Link may have a bounded number of unanswered requests", "[rpc][link]") {
  RigOptions options;
  options.rpc.link_requests_max = 4;
  ServerRig server(options);
  TestWorker worker(server);
  worker.set_up();
  // The writer stands still, so that nothing is answered meanwhile.
  std::promise<void> go_on;
  server.sequencer->submit(Tick{},
                           [wait = go_on.get_future().share()](const auto&) { wait.wait(); });
  for (uint64_t i = 1; i <= 5; ++i) {
    auto request = with(worker.reserve(i, static_cast<char>('a' + i)));
    request.set_correlation(900 + i);
    REQUIRE(worker.link->stream->Write(request));
  }
  v1::LinkResponse message;
  REQUIRE(worker.link->read(message));
  CHECK(message.correlation() == 905);
  CHECK(reason_of(message) == Reason::kQueueFull);
  go_on.set_value();
  for (uint64_t i = 1; i <= 4; ++i) {
    REQUIRE(worker.link->read(message));
    CHECK(message.correlation() == 900 + i);
    CHECK(message.has_reserve());
  }
}

TEST_CASE("a peer that does not read its Link is ended", "[rpc][link]") {
  RigOptions options;
  options.rpc.link_messages_max = 16;
  ServerRig server(options);
  TestWorker worker(server);
  worker.set_up();
  // Answers that nobody reads fill the transport, then the queue.
  bool is_writable = true;
  for (int i = 0; i < 200'000 && is_writable; ++i) {
    v1::LinkRequest bad;
    bad.set_correlation(2000 + static_cast<uint64_t>(i));
    bad.mutable_open_client()->set_engine_id(std::string(900, 'e'));
    is_writable = worker.link->stream->Write(bad);
  }
  CHECK_FALSE(is_writable);
  worker.attach();
}

TEST_CASE("streams are bounded and the bound is named", "[rpc][link]") {
  RigOptions options;
  options.rpc.streams_max = 2;
  ServerRig server(options);
  TestWorker worker(server);
  worker.attach();
  grpc::ClientContext watching;
  set_deadline(watching, kTestDeadline);
  auto watch = server.admin->WatchEvents(&watching, v1::WatchEventsRequest());
  watch->WaitForInitialMetadata();
  const Error refused = TestLink(*server.directory, worker.caller).ended();
  CHECK(refused.reason == Reason::kLimitReached);
  CHECK_THAT(refused.message, Contains("limits.streams_max"));
  watching.TryCancel();
  CHECK_FALSE(watch->Finish().ok());
}

}  // namespace berth::testing
