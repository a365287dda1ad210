// The engine-facing service on a real unix socket: join, descriptors, bytes in place, death.
#include "worker/local/engine_service.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "common/clock.h"
#include "common/descriptor_passing.h"
#include "common/rpc_channel.h"
#include "common/rpc_server.h"
#include "common/rpc_status.h"
#include "common/unix_socket.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/local/fake_server.h"

namespace berth::worker {
namespace {

using berth::testing::TemporaryDirectory;

constexpr uint64_t kPage = 4096;
constexpr uint64_t kProcess = 77;

AgentOptions agent_options() {
  AgentOptions options;
  options.worker_name = "w0";
  options.process = kProcess;
  options.request_token = std::string(16, 'r');
  options.clients_max = 2;
  AgentPool pool;
  pool.spec.set_name("cpu");
  pool.spec.set_medium(v1::MEDIUM_CPU);
  pool.spec.set_scope(v1::SCOPE_HOST);
  pool.spec.set_capacity_bytes(16 * kPage);
  pool.spec.set_page_bytes(kPage);
  pool.map_bytes = 16 * kPage;
  options.pools.push_back(pool);
  return options;
}

// A worker's local half with a fake berthd; its own thread gives it time.
class LocalRig {
 public:
  LocalRig() {
    REQUIRE(ftruncate(memory_.get(), 16 * kPage) == 0);
    EngineServiceOptions options;
    options.joins_max = 3;
    options.pool_descriptors = {memory_.get()};
    options.publish = [this](std::span<const WrittenSpan> spans) -> Result<> {
      published += spans.size();
      return {};
    };
    service_.emplace(std::move(options), host_, *keeper_);
    host_.set_perform([this](Action& action) { perform(action); });
    descriptors_ = *DescriptorServer::start(socket() + ".fd", *keeper_, 8, [this](SessionId id) {
      host_.feed([&](Agent& agent, Time now) { agent.client_suspected(id, now); });
    });
    service_->set_descriptors(descriptors_.get());
    grpc::ServerBuilder builder;
    builder.RegisterService(&*service_);
    RpcListener listener;
    listener.name = "socket";
    listener.address = {AddressKind::kUnix, {}, 0, socket()};
    server_ = std::move(*start_rpc_server(builder, {listener}));
    ticker_ = std::thread([this] {
      // As fast as the clock, so that no deadline comes before an answer that is on its way.
      const SteadyClock clock;
      while (!is_over_) {
        host_.tick(Time{clock.monotonic_millis()});
        std::this_thread::yield();
      }
    });
  }
  ~LocalRig() {
    service_->close();
    server_.shut_down(seconds(5));
    is_over_ = true;
    ticker_.join();
    descriptors_.reset();
  }

  std::string socket() const { return directory_.path() + "/w0.sock"; }
  std::unique_ptr<v1::Worker::Stub> stub() const {
    ChannelOptions options;
    options.own_connection = true;
    return v1::Worker::NewStub(
        *make_channel("socket", {AddressKind::kUnix, {}, 0, socket()}, options));
  }
  // Returns when it is so; the test's own time limit ends a hang.
  template <class Predicate>
  void until(Predicate predicate) const {
    while (!predicate()) std::this_thread::yield();
  }
  size_t clients() const {
    return host_.ask([](const Agent& agent) { return agent.client_count(); });
  }
  size_t life_files() const {
    size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory_.path())) {
      count += file.path().extension() == ".life" ? 1 : 0;
    }
    return count;
  }
  std::string broken() const {
    return host_.ask([](const Agent& agent) { return agent.check_invariants(); });
  }

  std::atomic<size_t> published{0};

 private:
  void perform(Action& action) {
    if (server_side_.perform(action)) return;
    std::visit(
        [this](auto& body) {
          using Body = std::decay_t<decltype(body)>;
          if constexpr (std::is_same_v<Body, Answer> || std::is_same_v<Body, Welcome> ||
                        std::is_same_v<Body, Push> || std::is_same_v<Body, EndJoin> ||
                        std::is_same_v<Body, TestLife>) {
            service_->perform(body);
          }
        },
        action);
  }

  TemporaryDirectory directory_;
  UniqueFd memory_{memfd_create("pool", MFD_CLOEXEC)};
  std::unique_ptr<LifeKeeper> keeper_ = *LifeKeeper::open(directory_.path(), "w0");
  AgentHost host_{agent_options()};

 public:
  FakeServer server_side_{host_};

 private:
  std::optional<EngineService> service_;
  std::unique_ptr<DescriptorServer> descriptors_;
  RpcServer server_;
  std::atomic<bool> is_over_{false};
  std::thread ticker_;
};

// An engine that joined: what a client library does, step by step.
class Joined {
 public:
  Joined(LocalRig& rig, const std::string& engine_id) : stub(rig.stub()), rig_(rig) {
    stream_ = stub->Join(&context_);
    v1::JoinRequest hello;
    hello.mutable_hello()->set_engine_id(engine_id);
    hello.mutable_hello()->mutable_versions()->set_newest(1);
    hello.mutable_hello()->mutable_versions()->set_oldest(1);
    stream_->Write(hello);
  }
  ~Joined() { end(); }

  Result<> wait_for_welcome() {
    v1::JoinResponse response;
    if (!stream_->Read(&response)) {
      return tl::unexpected(error_from_status(std::exchange(stream_, nullptr)->Finish()));
    }
    welcome = response.welcome();
    return {};
  }
  void fetch() {
    connection_ = std::move(*connect_seqpacket(rig_.socket() + ".fd"));
    REQUIRE(send_descriptors(connection_.get(), welcome.descriptor_ticket(), {}));
    auto message = receive_descriptors(connection_.get());
    REQUIRE(message);
    descriptors = std::move(message->descriptors);
    REQUIRE(descriptors.size() == 2);
    memory = static_cast<char*>(
        mmap(nullptr, 16 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1].get(), 0));
    REQUIRE(memory != MAP_FAILED);
  }
  // As the process's death does: stream, connection and lock go.
  void end() {
    if (memory && memory != MAP_FAILED) munmap(memory, 16 * kPage);
    memory = nullptr;
    descriptors.clear();
    connection_.reset();
    context_.TryCancel();
    if (stream_) std::exchange(stream_, nullptr)->Finish();
  }
  v1::ClientCaller caller() const {
    v1::ClientCaller caller;
    caller.set_client_session(welcome.client_session());
    caller.set_token(welcome.token());
    caller.set_worker_incarnation(welcome.worker_incarnation());
    return caller;
  }
  template <class Response, class Request, class Method>
  Result<Response> call(Method method, Request request) {
    *request.mutable_caller() = caller();
    grpc::ClientContext context;
    set_deadline(context, seconds(60));
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return tl::unexpected(error_from_status(status));
    return response;
  }
  Result<v1::BeginStoreResponse> begin_store(uint64_t operation) {
    v1::BeginStoreRequest request;
    request.set_operation(operation);
    request.set_namespace_id(3);
    request.set_digests(std::string(16, 'd'));
    request.add_sizes(kPage);
    return call<v1::BeginStoreResponse>(&v1::Worker::Stub::BeginStore, request);
  }
  void open_namespace() {
    REQUIRE(call<v1::OpenNamespaceResponse>(&v1::Worker::Stub::OpenNamespace,
                                            v1::WorkerOpenNamespaceRequest()));
  }

  std::unique_ptr<v1::Worker::Stub> stub;
  v1::JoinWelcome welcome;
  std::vector<UniqueFd> descriptors;
  char* memory = nullptr;

 private:
  LocalRig& rig_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::JoinRequest, v1::JoinResponse>> stream_;
  UniqueFd connection_;
};

}  // namespace

TEST_CASE("an engine joins, writes bytes in place, and reads them back", "[local]") {
  LocalRig rig;
  Joined engine(rig, "e0");
  REQUIRE(engine.wait_for_welcome());
  CHECK(engine.welcome.worker_incarnation() == kProcess);
  REQUIRE(engine.welcome.pools_size() == 1);
  engine.fetch();
  engine.open_namespace();

  const auto begun = engine.begin_store(1);
  REQUIRE(begun);
  REQUIRE(begun->replicas_size() == 1);
  engine.memory[begun->offsets(0)] = 'B';
  v1::FinishStoreRequest finish;
  finish.set_operation(2);
  finish.add_replicas(begun->replicas(0));
  const auto finished =
      engine.call<v1::FinishStoreResponse>(&v1::Worker::Stub::FinishStore, finish);
  REQUIRE(finished);
  CHECK(finished->codes() == std::string(1, static_cast<char>(v1::COMMIT_CODE_COMMITTED)));
  CHECK(rig.published == 1);

  v1::LoadRequest load;
  load.set_operation(3);
  load.set_namespace_id(3);
  load.set_digests(std::string(16, 'd'));
  const auto loaded = engine.call<v1::LoadResponse>(&v1::Worker::Stub::Load, load);
  REQUIRE(loaded);
  REQUIRE(loaded->chunks() == 1);
  CHECK(engine.memory[loaded->offsets(0)] == 'B');
  v1::WorkerReleaseRequest release;
  release.add_handles(loaded->handle());
  const auto released = engine.call<v1::WorkerReleaseResponse>(&v1::Worker::Stub::Release, release);
  REQUIRE(released);
  CHECK(released->released() == std::string(1, '\1'));
  CHECK(rig.broken() == "");
}

TEST_CASE("refusals reach the engine with their reason", "[local]") {
  LocalRig rig;
  Joined engine(rig, "e0");
  REQUIRE(engine.wait_for_welcome());
  CHECK(engine.begin_store(1).error().reason == Reason::kUnknownNamespace);
  engine.open_namespace();
  REQUIRE(engine.begin_store(1));
  engine.welcome.set_worker_incarnation(1);
  CHECK(engine.begin_store(2).error().reason == Reason::kRejoin);

  Joined bad(rig, "no spaces, please");
  CHECK(bad.wait_for_welcome().error().reason == Reason::kInvalidArgument);
}

TEST_CASE("joins past the bound are refused, and a refused one leaves no file", "[local]") {
  LocalRig rig;
  Joined first(rig, "e0");
  Joined second(rig, "e1");
  REQUIRE(first.wait_for_welcome());
  REQUIRE(second.wait_for_welcome());
  Joined third(rig, "e2");
  CHECK(third.wait_for_welcome().error().reason == Reason::kLimitReached);
  rig.until([&] { return rig.life_files() == 2; });
}

TEST_CASE("an engine that dies is fenced by its free lock, and its room comes back", "[local]") {
  LocalRig rig;
  Joined engine(rig, "e0");
  REQUIRE(engine.wait_for_welcome());
  engine.fetch();
  engine.open_namespace();
  REQUIRE(engine.begin_store(1));
  const uint64_t session = engine.welcome.client_session();
  engine.end();
  rig.until([&] { return rig.server_side_.fenced().count(session) > 0; });
  rig.until([&] { return rig.clients() == 0; });
  CHECK(rig.broken() == "");
}

TEST_CASE("an engine that is only disconnected keeps what it holds", "[local]") {
  LocalRig rig;
  Joined engine(rig, "e0");
  REQUIRE(engine.wait_for_welcome());
  engine.fetch();
  engine.open_namespace();
  REQUIRE(engine.begin_store(1));
  std::vector<UniqueFd> held = std::move(engine.descriptors);  // as a fork of it would
  engine.end();
  Joined other(rig, "e1");  // time passes for everybody
  REQUIRE(other.wait_for_welcome());
  CHECK(rig.clients() == 2);
  CHECK(rig.server_side_.fenced().empty());
  const uint64_t session = engine.welcome.client_session();
  held.clear();
  rig.until([&] { return rig.server_side_.fenced().count(session) > 0; });
}

TEST_CASE("an engine that leaves is closed, not fenced", "[local]") {
  LocalRig rig;
  Joined engine(rig, "e0");
  REQUIRE(engine.wait_for_welcome());
  REQUIRE(engine.call<v1::LeaveResponse>(&v1::Worker::Stub::Leave, v1::LeaveRequest()));
  CHECK(rig.server_side_.closed().count(engine.welcome.client_session()) == 1);
  CHECK(rig.server_side_.fenced().empty());
  CHECK(rig.clients() == 0);
}

TEST_CASE("a worker that stops ends every call and stream", "[local]") {
  auto rig = std::make_unique<LocalRig>();
  Joined engine(*rig, "e0");
  REQUIRE(engine.wait_for_welcome());
  engine.fetch();
  rig.reset();  // returns although the engine holds its stream open
  v1::WorkerProbeRequest probe;
  CHECK(engine.call<v1::ProbeResponse>(&v1::Worker::Stub::Probe, probe).error().reason ==
        Reason::kUnavailable);
}

}  // namespace berth::worker
