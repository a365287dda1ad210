// Listens for a gRPC server and hands it the connections. gRPC's own listener gives up for good
// when the process runs out of descriptors; this one keeps a share of them free for everything else
// (the store's files, memory, peers that are there), refuses connections beyond it, and goes on as
// soon as some have left.
//
// One thread of its own per server. Destroying it ends the thread, closes the listeners and removes
// their unix sockets; connections that the server has are not touched.
#pragma once

#include <grpcpp/server_builder.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/address.h"
#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

// Listening sockets of one address: a name may stand for several.
struct RpcSockets {
  std::vector<UniqueFd> sockets;
  Address address;  // with the real port where 0 was asked for
};
// Errors: kIoError naming the address when it is in use, not ours or not permitted.
Result<RpcSockets> listen_rpc(const Address& address, mode_t socket_mode);

using RpcIntake = grpc::experimental::ExternalConnectionAcceptor;

class RpcAcceptor {
 public:
  // `on_refused` is called on the acceptor's thread for each connection that was turned away.
  RpcAcceptor(std::vector<RpcSockets> listeners, std::unique_ptr<RpcIntake> intake,
              std::function<void()> on_refused);
  ~RpcAcceptor();
  RpcAcceptor(const RpcAcceptor&) = delete;
  RpcAcceptor& operator=(const RpcAcceptor&) = delete;

 private:
  void run();
  // False: there is nobody more to let in, or no descriptor to do it with.
  bool accept_one(int listener);
  void refuse(int peer);

  std::vector<RpcSockets> listeners_;
  std::unique_ptr<RpcIntake> intake_;
  std::function<void()> on_refused_;
  bool is_crowded_ = false;
  bool is_resting_ = false;
  UniqueFd stop_;
  std::thread thread_;
};

}  // namespace berth
