// Unary calls and Reattach against a real server, over restarts too.
#include <catch2/catch.hpp>

#include "tests/unit/rpc/raw_call.h"
#include "tests/unit/rpc/server_rig.h"

namespace berth::testing {
namespace {

using Catch::Contains;
using Directory = v1::Directory::Stub;

}  // namespace

TEST_CASE("a worker is told what is in force", "[rpc][session]") {
  ServerRig server;
  const TestWorker worker(server);
  CHECK(worker.opened.version() == 1);
  CHECK(worker.opened.features(0) == "link_ops");
  CHECK(worker.opened.token().size() == 16);
  CHECK(worker.opened.store().epoch() == 1);
  CHECK(worker.opened.store().store_id().size() == 16);
  CHECK(worker.opened.limits().batch_items_max() == 4096);
  CHECK(worker.opened.heartbeat_deadline_ms() == 10'000);
}

TEST_CASE("a repeated OpenSession is one session", "[rpc][session]") {
  ServerRig server;
  const auto first = call(*server.directory, &Directory::OpenSession, open_worker_request());
  const auto again = call(*server.directory, &Directory::OpenSession, open_worker_request());
  REQUIRE(first);
  REQUIRE(again);
  CHECK(again->session() == first->session());
  CHECK(again->token() == first->token());
}

TEST_CASE("a second live worker of a name is refused", "[rpc][session]") {
  ServerRig server;
  const TestWorker worker(server, "w0");
  auto second = open_worker_request();
  second.set_worker_name("w0");
  second.set_request_token(std::string(16, 'z'));
  const auto refused = call(*server.directory, &Directory::OpenSession, second);
  CHECK(refused.error().reason == Reason::kNameInUse);
  CHECK_THAT(refused.error().message, Contains("w0"));
}

TEST_CASE("a caller of another protocol is refused with both ranges", "[rpc][session]") {
  ServerRig server;
  auto ahead = open_worker_request();
  ahead.mutable_versions()->set_newest(9);
  ahead.mutable_versions()->set_oldest(8);
  const auto refused = call(*server.directory, &Directory::OpenSession, ahead);
  CHECK(refused.error().reason == Reason::kUnsupportedVersion);
  CHECK_THAT(refused.error().message, Contains("versions 8 to 9") && Contains("version 1"));
}

TEST_CASE("a namespace reopened with one field changed names the field", "[rpc][namespace]") {
  ServerRig server;
  v1::OpenNamespaceRequest open;
  *open.mutable_spec() = space_spec();
  const auto first = call(*server.directory, &Directory::OpenNamespace, open);
  REQUIRE(first);
  CHECK(first->fingerprint().size() == 16);
  CHECK(first->spec().tensor_parallel() == 1);
  CHECK(call(*server.directory, &Directory::OpenNamespace, open)->namespace_id() ==
        first->namespace_id());
  open.mutable_spec()->set_dtype("fp8_e4m3");
  const auto refused = call(*server.directory, &Directory::OpenNamespace, open);
  CHECK(refused.error().reason == Reason::kNamespaceMismatch);
  CHECK_THAT(refused.error().message, Contains("dtype"));
}

TEST_CASE("every unary call does what its Link message does", "[rpc][unary]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  auto& stub = *server.directory;
  const auto reserved = call(stub, &Directory::Reserve, from(worker, worker.reserve(1, 'k')));
  REQUIRE(reserved);
  const auto committed =
      call(stub, &Directory::Commit, from(worker, worker.commit(2, reserved->first_replica())));
  REQUIRE(committed);
  CHECK(committed->codes() == std::string(6, v1::COMMIT_CODE_COMMITTED));
  CHECK(call(stub, &Directory::Probe, from(worker, worker.probe(std::string(16, 'k'))))
            ->usable_chunks() == 1);
  const auto acquired =
      call(stub, &Directory::Acquire, from(worker, worker.acquire(3, std::string(16, 'k'))));
  REQUIRE(acquired);

  v1::RenewRequest renew;
  renew.set_client_session(worker.client);
  renew.add_leases(acquired->lease());
  renew.add_leases(999);
  CHECK(call(stub, &Directory::Renew, from(worker, renew))->renewed() == std::string("\1\0", 2));
  v1::ReleaseRequest release;
  release.set_client_session(worker.client);
  release.add_leases(acquired->lease());
  CHECK(call(stub, &Directory::Release, from(worker, release))->released() == "\1");

  const auto open = call(stub, &Directory::Reserve, from(worker, worker.reserve(4, 'm')));
  v1::AbortRequest abort;
  abort.set_client_session(worker.client);
  abort.add_replicas(open->first_replica());
  CHECK(call(stub, &Directory::Abort, from(worker, abort))->freed() == "\1");
  CHECK(call(stub, &Directory::Abort, from(worker, abort))->freed() == std::string(1, '\0'));

  v1::ResolveRequest resolve;
  resolve.set_client_session(worker.client);
  resolve.set_operation(2);
  CHECK(call(stub, &Directory::Resolve, from(worker, resolve))->outcome() ==
        v1::ResolveResponse::OUTCOME_COMMITTED);
  v1::ClosePoolRequest close;
  close.set_pool(worker.pool);
  CHECK(call(stub, &Directory::ClosePool, from(worker, close))->replicas_left() > 0);
}

TEST_CASE("a scheduler probes without a session of its own", "[rpc][unary]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  worker.store(1, 'k');
  v1::ProbeRequest probe = worker.probe(std::string(16, 'k'));
  probe.clear_client_session();
  for (uint32_t shard = 0; shard < 2; ++shard) {
    v1::Target& target = *probe.add_targets();
    target.set_shard(shard);
    target.set_session(worker.caller.session());
  }
  const auto probed = call(*server.directory, &Directory::Probe, probe);
  REQUIRE(probed);
  CHECK(probed->usable_chunks() == 1);
}

TEST_CASE("a call without the right token or incarnation changes nothing", "[rpc][unary]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  auto request = from(worker, worker.reserve(1, 'k'));
  request.mutable_caller()->set_token(std::string(16, 'x'));
  CHECK(call(*server.directory, &Directory::Reserve, request).error().reason ==
        Reason::kWrongToken);
  request = from(worker, worker.reserve(1, 'k'));
  request.mutable_caller()->set_incarnation(1);
  CHECK(call(*server.directory, &Directory::Reserve, request).error().reason ==
        Reason::kStaleIncarnation);
  request.clear_caller();
  CHECK(call(*server.directory, &Directory::Reserve, request).error().reason ==
        Reason::kInvalidArgument);
  const auto status = call(*server.admin, &v1::Admin::Stub::GetStatus, v1::GetStatusRequest());
  CHECK(status->reservations() == 0);
}

TEST_CASE("what was READY is kept over a restart of the server and a re-attach",
          "[rpc][reattach]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  const auto first =
      call(*server.directory, &Directory::Reserve, from(worker, worker.reserve(1, 'k')))
          ->first_replica();
  const auto commit = worker.commit(2, first);
  REQUIRE(call(*server.directory, &Directory::Commit, from(worker, commit)));
  v1::OpenNamespaceRequest open;
  *open.mutable_spec() = space_spec();
  const std::string fingerprint =
      call(*server.directory, &Directory::OpenNamespace, open)->fingerprint();

  server.stop();
  CHECK(worker.link->ended().reason == Reason::kUnavailable);
  server.start();

  auto probe = from(worker, worker.probe(std::string(16, 'k')));
  CHECK(call(*server.directory, &Directory::Probe, probe)->miss_reason() ==
        v1::MISS_REASON_UNVERIFIED);
  grpc::ClientContext context;
  set_deadline(context, kTestDeadline);
  auto stream = server.directory->Reattach(&context);
  v1::ReattachRequest request;
  v1::ReattachResponse response;
  *request.mutable_hello()->mutable_caller() = worker.caller;
  request.mutable_hello()->set_boot_id(std::string(16, 'b'));
  REQUIRE(stream->Write(request));
  REQUIRE(stream->Read(&response));
  CHECK(response.welcome().store().epoch() == 2);
  CHECK_FALSE(response.welcome().foreign_store());
  REQUIRE(response.welcome().clients_size() == 1);
  CHECK(response.welcome().clients(0).session() == worker.client);
  worker.caller.set_incarnation(response.welcome().incarnation());

  v1::LedgerChunk& chunk = *request.mutable_chunk();
  chunk.set_pool(worker.pool);
  chunk.set_namespace_fingerprint(fingerprint);
  chunk.set_digest_bytes(16);
  for (int i = 0; i < 6; ++i) {
    chunk.add_replicas(first + static_cast<uint64_t>(i));
    chunk.mutable_digests()->append(16, 'k');
    chunk.add_shards(static_cast<uint32_t>(i) / 3);
    chunk.add_parts(static_cast<uint32_t>(i) % 3);
    chunk.add_offsets(commit.offsets(i));
    chunk.add_sizes(4000);
    chunk.add_states(v1::LEDGER_STATE_SEALED);
  }
  REQUIRE(stream->Write(request));
  REQUIRE(stream->Read(&response));
  REQUIRE(response.verdicts().verdicts_size() == 6);
  for (const auto verdict : response.verdicts().verdicts())
    CHECK(verdict == v1::LEDGER_VERDICT_KEEP);
  request.mutable_end()->add_clients(worker.client);
  REQUIRE(stream->Write(request));
  REQUIRE(stream->Read(&response));
  CHECK(response.done().dropped() == 0);
  CHECK(stream->Finish().ok());

  worker.link = std::make_unique<TestLink>(*server.directory, worker.caller);
  REQUIRE(worker.link->is_welcomed());
  CHECK(call(*server.directory, &Directory::Probe, from(worker, probe))->usable_chunks() == 1);
}

TEST_CASE("a Reattach that is out of order ends with what was expected", "[rpc][reattach]") {
  ServerRig server;
  TestWorker worker(server);
  grpc::ClientContext context;
  set_deadline(context, kTestDeadline);
  auto stream = server.directory->Reattach(&context);
  v1::ReattachRequest request;
  request.mutable_end();
  REQUIRE(stream->Write(request));
  v1::ReattachResponse response;
  CHECK_FALSE(stream->Read(&response));
  const Error error = error_from_status(stream->Finish());
  CHECK(error.reason == Reason::kInvalidArgument);
  CHECK_THAT(error.message, Contains("hello"));
  worker.attach();
}

TEST_CASE("calls and requests on Links are counted by method and result", "[rpc][metrics]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  v1::LinkRequest probe;
  *probe.mutable_probe() = worker.probe(std::string(16, 'k'));
  worker.link->ask(probe);
  v1::LinkRequest reserve;
  *reserve.mutable_reserve() = worker.reserve(1, 'k');
  worker.link->ask(reserve);
  auto bad = from(worker, worker.probe("odd"));
  CHECK_FALSE(call(*server.directory, &Directory::Probe, bad));
  const std::string text = server.registry->render();
  CHECK_THAT(text, Contains("berth_rpc_calls_total{method=\"OpenSession\",result=\"ok\"} 1\n"));
  CHECK_THAT(text,
             Contains("berth_rpc_calls_total{method=\"Probe\",result=\"invalid_argument\"} 1\n"));
  CHECK_THAT(text, Contains("berth_rpc_calls_total{method=\"link:probe\",result=\"ok\"} 1\n"));
  CHECK_THAT(text, Contains("berth_rpc_seconds_count{method=\"link:register_pool\"} 1\n"));
  CHECK_THAT(text, Contains("berth_store_items_total{result=\"granted\"} 6\n"));
  CHECK_THAT(text, Contains("berth_probes_total{reason=\"not_present\"} 1\n"));
}

TEST_CASE("a request that cannot be read is counted with the answer that gRPC gives it",
          "[rpc][metrics]") {
  ServerRig server;
  const std::string path = "/berth.v1.Directory/Probe";
  const RawAnswer refused = raw_answer(server.channel, path, "\xff\xff\xff");
  CHECK(refused.status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
  // It is counted when gRPC lets go of it.
  server.endpoint->stop(seconds(2));
  CHECK_THAT(server.registry->render(),
             Contains("berth_rpc_calls_total{method=\"Probe\",result=\"unimplemented\"} 1\n"));
}

TEST_CASE("the end of a Link is counted once, by what it said", "[rpc][metrics]") {
  ServerRig server;
  TestWorker worker(server);
  worker.set_up();
  server.endpoint->stop(seconds(2));
  const std::string text = server.registry->render();
  CHECK_THAT(text, Contains("berth_rpc_calls_total{method=\"Link\",result=\"unavailable\"} 1\n"));
  CHECK_THAT(text, Contains("berth_rpc_calls_total{method=\"Link\",result=\"cancelled\"} 0\n"));
}

}  // namespace berth::testing
