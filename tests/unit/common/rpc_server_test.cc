// Real gRPC servers and channels with our settings.
#include "common/rpc_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "berth/v1/directory.grpc.pb.h"
#include "common/rpc_channel.h"
#include "common/rpc_settings.h"
#include "common/rpc_status.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

constexpr Duration kSoon = seconds(20);  // ends a test that hangs, decides nothing

// Refuses every probe with the size of what it got.
class RefusingDirectory final : public v1::Directory::Service {
  grpc::Status Probe(grpc::ServerContext*, const v1::ProbeRequest* request,
                     v1::ProbeResponse*) override {
    return status_from_error({Reason::kReattaching, std::to_string(request->ByteSizeLong())});
  }
};

struct Rig {
  RefusingDirectory service;
  RpcServer running;

  Result<> start(const RpcListener& listener, std::function<void()> on_refused = {}) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service);
    auto started = start_rpc_server(builder, {listener}, std::move(on_refused));
    if (!started) return tl::unexpected(started.error());
    running = std::move(*started);
    return {};
  }
  const Address& address() const { return running.addresses.at(0); }
};

RpcListener on_any_port() { return {"grpc.listen", {AddressKind::kTcp, "127.0.0.1", 0, ""}}; }

grpc::Status probe(const Address& address, const std::string& digests) {
  const auto channel = make_channel("server", address);
  REQUIRE(channel.has_value());
  const auto stub = v1::Directory::NewStub(*channel);
  grpc::ClientContext context;
  set_deadline(context, kSoon);
  context.set_wait_for_ready(false);
  v1::ProbeRequest request;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(9999, digests);
  v1::ProbeResponse response;
  return stub->Probe(&context, request, &response);
}

}  // namespace

TEST_CASE("a refusal crosses a real connection with its reason", "[common][rpc]") {
  Rig rig;
  REQUIRE(rig.start(on_any_port()).has_value());
  CHECK(rig.address().port != 0);
  const grpc::Status status = probe(rig.address(), "");
  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(error_from_status(status).reason == Reason::kReattaching);
}

TEST_CASE("a message above gRPC's default passes, one above our bound is refused",
          "[common][rpc]") {
  Rig rig;
  REQUIRE(rig.start(on_any_port()).has_value());
  const auto large = error_from_status(probe(rig.address(), std::string(6 << 20, 'x')));
  CHECK(large.reason == Reason::kReattaching);
  const auto too_large =
      error_from_status(probe(rig.address(), std::string(kRpcMessageBytesMax + 1, 'x')));
  CHECK(too_large.reason == Reason::kQueueFull);
}

TEST_CASE("a port that another server holds is refused and not shared", "[common][rpc]") {
  Rig first;
  REQUIRE(first.start(on_any_port()).has_value());
  Rig second;
  RpcListener same = on_any_port();
  same.address = first.address();
  const auto refused = second.start(same);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().reason == Reason::kIoError);
  CHECK(refused.error().message.find(first.address().text()) != std::string::npos);
}

TEST_CASE("a unix socket gets its permissions, and a second server does not steal it",
          "[common][rpc]") {
  const testing::TemporaryDirectory directory;
  const RpcListener listener{"worker.socket",
                             {AddressKind::kUnix, "", 0, directory.path() + "/w0.sock"}};
  Rig first;
  REQUIRE(first.start(listener).has_value());
  struct stat facts {};
  REQUIRE(stat(listener.address.path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0660);
  Rig second;
  const auto refused = second.start(listener);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().reason == Reason::kNameInUse);
  CHECK(error_from_status(probe(first.address(), "")).reason == Reason::kReattaching);
}

TEST_CASE("a file in the place of a unix socket is left alone", "[common][rpc]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/w0.sock";
  std::ofstream(path) << "data";
  Rig rig;
  CHECK_FALSE(rig.start({"worker.socket", {AddressKind::kUnix, "", 0, path}}).has_value());
  CHECK(std::filesystem::file_size(path) == 4);
}

TEST_CASE("connections beyond the descriptors are turned away, and let in when some have left",
          "[common][rpc][FC-28]") {
  // A low limit of this process for as long as the test lasts.
  struct LowLimit {
    LowLimit() {
      REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
      const rlimit low{200, before.rlim_max};
      REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
    }
    ~LowLimit() { setrlimit(RLIMIT_NOFILE, &before); }
    rlimit before{};
  };
  std::atomic<int> refused{0};  // outlives the rig, whose threads count in it
  Rig rig;
  REQUIRE(rig.start(on_any_port(), [&] { ++refused; }).has_value());
  // This end of the connections is made before the limit is: both are in one process.
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 150; ++i) crowd.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const LowLimit limit;
    sockaddr_in server{};
    server.sin_family = AF_INET;
    server.sin_port = htons(rig.address().port);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (const UniqueFd& peer : crowd)
      REQUIRE(connect(peer.get(), reinterpret_cast<sockaddr*>(&server), sizeof server) == 0);
    while (refused == 0) std::this_thread::yield();
  }
  crowd.clear();
  CHECK(error_from_status(probe(rig.address(), "")).reason == Reason::kReattaching);
}

TEST_CASE("a peer that is slow to say its first word is waited for", "[common][rpc]") {
  const UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t here_bytes = sizeof here;
  auto* const name = reinterpret_cast<sockaddr*>(&here);
  REQUIRE(bind(listener.get(), name, here_bytes) == 0);
  REQUIRE(listen(listener.get(), 8) == 0);
  REQUIRE(getsockname(listener.get(), name, &here_bytes) == 0);
  const auto channel =
      make_channel("server", {AddressKind::kTcp, "127.0.0.1", ntohs(here.sin_port), ""});
  REQUIRE(channel.has_value());
  const auto stub = v1::Directory::NewStub(*channel);
  grpc::ClientContext context;
  set_deadline(context, kSoon);
  std::thread caller([&] {
    v1::ProbeResponse response;
    (void)stub->Probe(&context, v1::ProbeRequest(), &response);
  });

  const UniqueFd peer(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  // Quiet for four times the pause between attempts. One that is given up closes its connection.
  bool is_given_up = false;
  pollfd entry{peer.get(), POLLIN, 0};
  while (!is_given_up && poll(&entry, 1, static_cast<int>(4 * kRpcReconnectFirst.millis)) == 1) {
    char preface[256];
    is_given_up = read(peer.get(), preface, sizeof preface) <= 0;
  }
  CHECK_FALSE(is_given_up);
  context.TryCancel();
  caller.join();
}

TEST_CASE("plain TCP beyond this host is refused on both sides unless asked for", "[common][rpc]") {
  const Address open = parse_address("grpc.listen", "0.0.0.0:0").value();
  Rig rig;
  const auto refused = rig.start({"grpc.listen", open});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().reason == Reason::kInvalidConfig);
  CHECK(refused.error().message.rfind("grpc.listen = \"0.0.0.0:0\"", 0) == 0);
  const Address remote = parse_address("server", "node-3:7420").value();
  CHECK_FALSE(make_channel("server", remote).has_value());
  CHECK(make_channel("server", remote, {Exposure::kInsecureAllowed}).has_value());
  CHECK(rig.start({"grpc.listen", open, Exposure::kInsecureAllowed}).has_value());
}

TEST_CASE("a server that is not there is unavailable, a method it lacks is unsupported",
          "[common][rpc]") {
  Rig rig;
  REQUIRE(rig.start(on_any_port()).has_value());
  const Address address = rig.address();
  const auto stub = v1::Directory::NewStub(make_channel("server", address).value());
  grpc::ClientContext context;
  set_deadline(context, kSoon);
  v1::ReserveResponse response;
  CHECK(error_from_status(stub->Reserve(&context, v1::ReserveRequest(), &response)).reason ==
        Reason::kUnsupportedVersion);
  rig.running.shut_down(seconds(0));
  rig.running.server.reset();
  CHECK(error_from_status(probe(address, "")).reason == Reason::kUnavailable);
}

TEST_CASE("a deadline in the past ends the call before it starts", "[common][rpc]") {
  Rig rig;
  REQUIRE(rig.start(on_any_port()).has_value());
  const auto channel = make_channel("server", rig.address()).value();
  const auto stub = v1::Directory::NewStub(channel);
  grpc::ClientContext context;
  set_deadline(context, milliseconds(-1));  // with 0 a busy machine may let the call through
  v1::ProbeResponse response;
  CHECK(error_from_status(stub->Probe(&context, v1::ProbeRequest(), &response)).reason ==
        Reason::kDeadlineExceeded);
}

}  // namespace berth
