// Starting a gRPC server with our settings: keepalive that fits our clients, bounded messages, a
// refusal, not a shared port, when somebody else already listens, and connections that cannot use
// up the process's descriptors (rpc_acceptor.h).
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/address.h"
#include "common/error.h"
#include "common/rpc_acceptor.h"
#include "common/time.h"

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
  std::unique_ptr<RpcAcceptor> acceptor;  // goes before the server

  // Lets nobody in any more, and ends the calls: those that are still open `within` are cancelled.
  void shut_down(Duration within);
};

// Applies our settings to `builder`, which has its services already, listens and starts.
// `on_refused` hears of each connection that was turned away for want of descriptors.
// Errors: kInvalidConfig for plain TCP beyond this host; kNameInUse for a unix socket in use;
// kIoError naming the address that cannot be listened at.
Result<RpcServer> start_rpc_server(grpc::ServerBuilder& builder,
                                   const std::vector<RpcListener>& listeners,
                                   std::function<void()> on_refused = {});

}  // namespace berth
