#include "common/rpc_channel.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include "common/rpc_locks.h"
#include "common/rpc_settings.h"

namespace berth {

Result<std::shared_ptr<grpc::Channel>> make_channel(std::string_view name, const Address& address,
                                                    const ChannelOptions& options) {
  if (const auto allowed = check_exposure(name, address, options.exposure); !allowed)
    return tl::unexpected(allowed.error());
  skip_lock_order_checks();
  grpc::ChannelArguments arguments;
  const auto set = [&](const char* key, int64_t value) {
    arguments.SetInt(key, static_cast<int>(value));
  };
  set(GRPC_ARG_KEEPALIVE_TIME_MS, kRpcKeepaliveEvery.millis);
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kRpcKeepaliveWithin.millis);
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);  // no limit; by default pings end after two
  set(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kRpcReconnectFirst.millis);
  set(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kRpcConnectWithin.millis);
  set(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kRpcReconnectMax.millis);
  set(GRPC_ARG_MAX_METADATA_SIZE, kRpcMetadataBytesMax);
  set(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  set(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, options.own_connection ? 1 : 0);
  arguments.SetMaxReceiveMessageSize(kRpcMessageBytesMax);
  arguments.SetMaxSendMessageSize(kRpcMessageBytesMax);
  return grpc::CreateCustomChannel(address.text(), grpc::InsecureChannelCredentials(), arguments);
}

gpr_timespec deadline_in(Duration within) {
  return gpr_time_from_millis(within.millis, GPR_TIMESPAN);
}

void set_deadline(grpc::ClientContext& context, Duration within) {
  context.set_deadline(deadline_in(within));
}

}  // namespace berth
