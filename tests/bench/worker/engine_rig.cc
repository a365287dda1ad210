#include "tests/bench/worker/engine_rig.h"

#include <cstring>

#include "common/rpc_channel.h"
#include "tests/bench/core/objects.h"
#include "tests/bench/rpc/ask_admin.h"

namespace berth::bench {
namespace {

constexpr const char* kNamespace = "bench";
// Latencies are measured, not cut off.
constexpr Duration kCallWithin = seconds(30);

client::NamespaceSpec namespace_spec() {
  client::NamespaceSpec spec;
  spec.name = kNamespace;
  spec.model = "bench@1";
  spec.dtype = "bytes";
  spec.chunk_tokens = 512;
  spec.digest_bytes = kDigestBytes;
  return spec;
}

}  // namespace

Result<EngineRig> EngineRig::start(uint64_t objects) {
  replay::ReplayOptions options;
  options.block_bytes = kObjectBytes;
  options.cpu_pool_bytes = objects * kObjectBytes;
  Result<replay::LocalFleet> fleet = replay::LocalFleet::start(options);
  if (!fleet) return tl::unexpected(fleet.error());
  Result<WorkFolder> folder = WorkFolder::make("");
  if (!folder) return tl::unexpected(folder.error());
  EngineRig rig(std::move(*fleet), std::move(*folder));
  if (Result<> connected = rig.connect(); !connected)
    return refuse(connected.error().reason, connected.error().message + "\n" + rig.fleet_.logs());
  return rig;
}

Result<> EngineRig::connect() {
  Result<LocalServer> echo = LocalServer::start_echo(folder_.path());
  if (!echo) return tl::unexpected(echo.error());
  echo_server_.emplace(std::move(*echo));
  const auto echo_channel = make_channel("echo", echo_server_->address(Transport::kUnix));
  const auto server = parse_address("server", fleet_.server_address());
  if (!server) return tl::unexpected(server.error());
  const auto server_channel = make_channel("server", *server);
  if (!echo_channel) return tl::unexpected(echo_channel.error());
  if (!server_channel) return tl::unexpected(server_channel.error());
  echo_ = Echo::NewStub(*echo_channel);
  admin_ = v1::Admin::NewStub(*server_channel);

  client::ClientOptions options;
  options.socket = fleet_.worker_sockets().front();
  options.engine_id = "bench";
  options.load_deadline = options.store_deadline = options.finish_deadline = kCallWithin;
  options.control_deadline = options.join_deadline = kCallWithin;
  auto joined = client::Client::join(std::move(options));
  if (!joined) return tl::unexpected(joined.error());
  client_ = std::move(*joined);
  const auto opened = client_->open_namespace(namespace_spec());
  if (!opened) return tl::unexpected(opened.error());
  namespace_ = *opened;
  return {};
}

std::vector<std::byte> EngineRig::next_chain(uint64_t count) {
  std::string digests;
  append_digests(digests, 1, objects_, count);
  objects_ += count;
  std::vector<std::byte> bytes(digests.size());
  std::memcpy(bytes.data(), digests.data(), digests.size());
  return bytes;
}

Result<> EngineRig::evict_all() { return evict_namespace(*admin_, kNamespace); }

}  // namespace berth::bench
