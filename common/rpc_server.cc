#include "common/rpc_server.h"

#include <grpcpp/security/server_credentials.h>

#include "common/rpc_channel.h"
#include "common/rpc_locks.h"
#include "common/rpc_settings.h"
#include "common/unix_socket.h"

namespace berth {
namespace {

void apply_settings(grpc::ServerBuilder& builder) {
  const auto set = [&](const char* key, int64_t value) {
    builder.AddChannelArgument(key, static_cast<int>(value));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kRpcKeepaliveEvery.millis);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kRpcKeepaliveWithin.millis);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kRpcPingIntervalMin.millis);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_MAX_METADATA_SIZE, kRpcMetadataBytesMax);
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, kRpcStreamsPerConnectionMax);
  builder.SetMaxReceiveMessageSize(kRpcMessageBytesMax);
  builder.SetMaxSendMessageSize(kRpcMessageBytesMax);
}

// A socket file that nobody serves is replaced, one that somebody serves is not.
Result<RpcSockets> listen(const RpcListener& listener) {
  if (const auto allowed = check_exposure(listener.name, listener.address, listener.exposure);
      !allowed)
    return tl::unexpected(allowed.error());
  if (listener.address.kind == AddressKind::kUnix)
    if (const auto free = replace_stale_socket(listener.address.path); !free)
      return tl::unexpected(free.error());
  return listen_rpc(listener.address, listener.socket_mode);
}

}  // namespace

void RpcServer::shut_down(Duration within) {
  acceptor.reset();
  server->Shutdown(deadline_in(within));
}

Result<RpcServer> start_rpc_server(grpc::ServerBuilder& builder,
                                   const std::vector<RpcListener>& listeners,
                                   std::function<void()> on_refused) {
  using Builder = grpc::ServerBuilder::experimental_type;
  skip_lock_order_checks();
  apply_settings(builder);
  std::vector<RpcSockets> sockets;
  RpcServer started;
  for (const RpcListener& listener : listeners) {
    auto listening = listen(listener);
    if (!listening) return tl::unexpected(listening.error());
    started.addresses.push_back(listening->address);
    sockets.push_back(std::move(*listening));
  }
  auto intake = builder.experimental().AddExternalConnectionAcceptor(
      Builder::ExternalConnectionType::FROM_FD, grpc::InsecureServerCredentials());
  started.server = builder.BuildAndStart();
  if (!started.server) return refuse(Reason::kInternal, "gRPC refused to start the server");
  started.acceptor =
      std::make_unique<RpcAcceptor>(std::move(sockets), std::move(intake), std::move(on_refused));
  return started;
}

}  // namespace berth
