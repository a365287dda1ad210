#include "common/rpc_server.h"

#include <grpcpp/security/server_credentials.h>
#include <sys/stat.h>

#include <deque>

#include "common/os_error.h"
#include "common/rpc_settings.h"
#include "common/text.h"
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
  // By default two servers can share a port, and each would get some of the calls.
  set(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kRpcMessageBytesMax);
  builder.SetMaxSendMessageSize(kRpcMessageBytesMax);
}

// gRPC would unlink a unix socket without asking whether somebody serves it.
Result<> check_listener(const RpcListener& listener) {
  if (const auto allowed = check_exposure(listener.name, listener.address, listener.exposure);
      !allowed)
    return allowed;
  if (listener.address.kind == AddressKind::kTcp) return {};
  return replace_stale_socket(listener.address.path);
}

std::string texts_of(const std::vector<RpcListener>& listeners) {
  std::string text;
  for (const RpcListener& listener : listeners) {
    if (!text.empty()) text += ", ";
    text += listener.address.text();
  }
  return text;
}

}  // namespace

Result<RpcServer> start_rpc_server(grpc::ServerBuilder& builder,
                                   const std::vector<RpcListener>& listeners) {
  apply_settings(builder);
  std::deque<int> ports;  // gRPC writes into them at the start
  for (const RpcListener& listener : listeners) {
    if (const auto checked = check_listener(listener); !checked)
      return tl::unexpected(checked.error());
    builder.AddListeningPort(listener.address.text(), grpc::InsecureServerCredentials(),
                             &ports.emplace_back(0));
  }
  RpcServer started{builder.BuildAndStart(), {}};
  if (!started.server)
    return refuse(Reason::kIoError, "cannot listen at " + texts_of(listeners) +
                                        ": an address is in use, not ours, or not permitted");
  for (size_t i = 0; i < listeners.size(); ++i) {
    Address& address = started.addresses.emplace_back(listeners[i].address);
    if (address.kind == AddressKind::kTcp) address.port = static_cast<uint16_t>(ports[i]);
    if (address.kind == AddressKind::kUnix &&
        chmod(address.path.c_str(), listeners[i].socket_mode) != 0)
      return refuse_os("set the permissions of " + quote(address.path));
  }
  return started;
}

}  // namespace berth
