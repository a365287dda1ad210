// Starting a gRPC server with our settings: keepalive that fits our clients, bounded messages, and
// a refusal, not a shared port, when somebody else already listens.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "common/address.h"
#include "common/error.h"

namespace berth {

struct RpcListener {
  std::string name;  // the option that held the address, for errors
  Address address;
  Exposure exposure = Exposure::kLocalOnly;
  mode_t socket_mode = 0660;  // of a unix socket
};

struct RpcServer {
  std::unique_ptr<grpc::Server> server;
  std::vector<Address> addresses;  // of the listeners, with the real ports where 0 was asked for
};

// Applies our settings to `builder`, which has its services already, listens and starts.
// Errors: kInvalidConfig for plain TCP beyond this host; kNameInUse for a unix socket in use;
// kIoError naming the addresses when one cannot be listened at.
Result<RpcServer> start_rpc_server(grpc::ServerBuilder& builder,
                                   const std::vector<RpcListener>& listeners);

}  // namespace berth
