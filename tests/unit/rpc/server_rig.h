// A real server in this process: sequencer, RocksDB in a temporary directory, gRPC on a unix
// socket. And a worker that speaks to it with plain stubs, so that a test can misbehave.
#pragma once

#include <grpcpp/grpcpp.h>

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/admin.grpc.pb.h"
#include "berth/v1/directory.grpc.pb.h"
#include "common/clock.h"
#include "common/random.h"
#include "common/rpc_channel.h"
#include "common/rpc_status.h"
#include "server/rpc/fields.h"
#include "server/rpc/rpc_endpoint.h"
#include "server/store/rocksdb_store.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/rpc/translate_fixture.h"

namespace berth::testing {

// Only ends a test that hangs.
inline constexpr Duration kTestDeadline = seconds(60);

struct RigOptions {
  rpc::RpcConfig rpc;
  SequencerConfig sequencer;
  // Puts something between the sequencer and RocksDB.
  std::function<std::unique_ptr<Store>(std::unique_ptr<Store>)> wrap_store = {};
};

class ServerRig {
 public:
  explicit ServerRig(RigOptions options = {}) : options_(std::move(options)) { start(); }
  ~ServerRig() { stop(); }

  void start() {
    RocksDbStoreOptions store;
    store.directory = directory_.path();
    auto opened = RocksDbStore::open(store);
    REQUIRE(opened);
    std::unique_ptr<Store> wrapped = std::move(*opened);
    if (options_.wrap_store) wrapped = options_.wrap_store(std::move(wrapped));
    sequencer = std::make_unique<Sequencer>(options_.sequencer, std::move(wrapped), clock_);
    health = std::make_unique<rpc::ServerHealth>();
    registry = std::make_unique<MetricsRegistry>();
    endpoint = std::make_unique<rpc::RpcEndpoint>(
        options_.rpc, *sequencer, *health, *registry, clock_,
        rpc::ServerFacts{"0.0.0", "interval", directory_.path(), 0, 0});
    REQUIRE(sequencer->start(random_id128(), endpoint.get(), [](uint64_t) {}));
    RpcListener listener;
    listener.name = "listen";
    listener.address = parse_address("listen", address()).value();
    REQUIRE(endpoint->start({listener}));
    health->set_serving();
    channel = grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
    directory = v1::Directory::NewStub(channel);
    admin = v1::Admin::NewStub(channel);
  }

  void stop() {
    if (endpoint) endpoint->stop(seconds(2));
    if (sequencer) sequencer->stop();
    endpoint.reset();
    sequencer.reset();
  }

  std::string address() const { return "unix:" + directory_.path() + "/berthd.sock"; }

  std::unique_ptr<Sequencer> sequencer;
  std::unique_ptr<rpc::ServerHealth> health;
  std::unique_ptr<MetricsRegistry> registry;
  std::unique_ptr<rpc::RpcEndpoint> endpoint;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Directory::Stub> directory;
  std::unique_ptr<v1::Admin::Stub> admin;

 private:
  TemporaryDirectory directory_;
  SteadyClock clock_;
  RigOptions options_;
};

// One unary call; a refusal comes back as the Error that it was.
template <class Stub, class Request, class Response>
Result<Response> call(Stub& stub,
                      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                      const Request& request) {
  grpc::ClientContext context;
  set_deadline(context, kTestDeadline);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return tl::unexpected(error_from_status(status));
  return response;
}

// One Link, spoken by hand.
class TestLink {
 public:
  TestLink(v1::Directory::Stub& stub, const v1::Caller& caller) {
    set_deadline(context, kTestDeadline);
    stream = stub.Link(&context);
    v1::LinkRequest hello;
    *hello.mutable_hello()->mutable_caller() = caller;
    stream->Write(hello);
  }

  // The next message, whatever it is; nothing once the stream has ended.
  bool read(v1::LinkResponse& message) {
    message.Clear();
    return stream->Read(&message);
  }
  // Reads until the predicate holds; what came before it is kept in `passed`.
  template <class Predicate>
  v1::LinkResponse read_until(Predicate wanted) {
    v1::LinkResponse message;
    while (read(message)) {
      if (wanted(message)) return message;
      passed.push_back(message);
    }
    FAIL("the Link ended: " << stream->Finish().error_message());
    return message;
  }
  bool is_welcomed() {
    v1::LinkResponse message;
    return read(message) && message.has_welcome();
  }

  v1::LinkResponse ask(v1::LinkRequest request) {
    request.set_correlation(++correlation);
    REQUIRE(stream->Write(request));
    return read_until([&](const auto& m) { return m.correlation() == correlation; });
  }

  // Why the server ended it.
  Error ended() {
    v1::LinkResponse message;
    while (read(message)) passed.push_back(message);
    return error_from_status(stream->Finish());
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LinkRequest, v1::LinkResponse>> stream;
  std::vector<v1::LinkResponse> passed;
  uint64_t correlation = 0;
};

// A worker with one pool and one client, attached from the start.
class TestWorker {
 public:
  explicit TestWorker(ServerRig& server, const std::string& name = "w0") : server_(server) {
    v1::OpenSessionRequest open = open_worker_request();
    open.set_worker_name(name);
    open.set_request_token(rpc::bytes_of(random_id128()));
    opened = call(*server.directory, &v1::Directory::Stub::OpenSession, open).value();
    caller.set_session(opened.session());
    caller.set_token(opened.token());
    caller.set_incarnation(opened.incarnation());
  }

  // An empty ledger, stated.
  v1::ReattachResponse reattach() {
    grpc::ClientContext context;
    set_deadline(context, kTestDeadline);
    auto stream = server_.directory->Reattach(&context);
    v1::ReattachRequest request;
    v1::ReattachResponse response;
    *request.mutable_hello()->mutable_caller() = caller;
    request.mutable_hello()->set_boot_id(std::string(16, 'b'));
    REQUIRE(stream->Write(request));
    REQUIRE(stream->Read(&response));
    REQUIRE(response.has_welcome());
    caller.set_incarnation(response.welcome().incarnation());
    const v1::ReattachResponse welcome = response;
    request.mutable_end();
    REQUIRE(stream->Write(request));
    REQUIRE(stream->Read(&response));
    REQUIRE(response.has_done());
    REQUIRE(stream->Finish().ok());
    return welcome;
  }

  TestLink& attach() {
    reattach();
    link = std::make_unique<TestLink>(*server_.directory, caller);
    REQUIRE(link->is_welcomed());
    return *link;
  }

  // Namespace, pool and client, so that objects can be stored.
  void set_up() {
    attach();
    v1::LinkRequest open;
    *open.mutable_open_namespace()->mutable_spec() = space_spec();
    namespace_id = link->ask(open).open_namespace().namespace_id();
    pool = link->ask(register_pool_request()).register_pool().pool();
    v1::LinkRequest join;
    *join.mutable_open_client() = open_client_request();
    join.mutable_open_client()->set_request_token(rpc::bytes_of(random_id128()));
    client = link->ask(join).open_client().session();
    REQUIRE(namespace_id != 0);
    REQUIRE(pool != 0);
    REQUIRE(client != 0);
  }

  // Every shard and part of one chunk.
  v1::ReserveRequest reserve(uint64_t operation, char digest) const {
    v1::ReserveRequest request;
    request.set_client_session(client);
    request.set_operation(operation);
    request.set_namespace_id(namespace_id);
    for (uint32_t shard = 0; shard < 2; ++shard)
      for (uint32_t part = 0; part < 3; ++part) {
        request.mutable_digests()->append(16, digest);
        request.add_shards(shard);
        request.add_parts(part);
      }
    request.add_sizes(4000);
    return request;
  }
  v1::CommitRequest commit(uint64_t operation, uint64_t first) const {
    v1::CommitRequest request;
    request.set_client_session(client);
    request.set_operation(operation);
    for (uint64_t i = 0; i < 6; ++i) {
      request.add_replicas(first + i);
      request.add_offsets((first + i) % 256 * 4096);
    }
    return request;
  }
  v1::AcquireRequest acquire(uint64_t operation, const std::string& digests) const {
    v1::AcquireRequest request;
    request.set_client_session(client);
    request.set_operation(operation);
    request.set_namespace_id(namespace_id);
    request.set_digests(digests);
    return request;
  }
  v1::ProbeRequest probe(const std::string& digests) const {
    v1::ProbeRequest request;
    request.set_client_session(client);
    request.set_namespace_id(namespace_id);
    request.set_digests(digests);
    return request;
  }

  // One chunk of six replicas, as two operations from `operation` on; returns the first replica.
  uint64_t store(uint64_t operation, char digest) const;

  v1::OpenSessionResponse opened;
  v1::Caller caller;
  std::unique_ptr<TestLink> link;
  uint64_t namespace_id = 0;
  uint64_t pool = 0;
  uint64_t client = 0;

 private:
  ServerRig& server_;
};

// The request as this worker's own, for a unary call.
template <class Request>
Request from(const TestWorker& worker, Request request) {
  *request.mutable_caller() = worker.caller;
  return request;
}

inline uint64_t TestWorker::store(uint64_t operation, char digest) const {
  auto& stub = *server_.directory;
  const auto reserved =
      call(stub, &v1::Directory::Stub::Reserve, from(*this, reserve(operation, digest)));
  REQUIRE(reserved);
  const uint64_t first = reserved->first_replica();
  REQUIRE(call(stub, &v1::Directory::Stub::Commit, from(*this, commit(operation + 1, first))));
  return first;
}

}  // namespace berth::testing
