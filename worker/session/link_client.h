// The agent's mouth and ear towards berthd: performs its calls and streams over gRPC and feeds what
// comes back. Each attempt has a channel of its own, so no back-off of an earlier one is inherited.
//
// Heartbeats are small, written by the tick, and go before everything that waits; nothing that is
// slow (pool memory, disks) runs on these threads.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "berth/v1/directory.grpc.pb.h"
#include "common/address.h"
#include "common/rpc_channel.h"
#include "worker/session/client_stream.h"
#include "worker/session/host.h"

namespace berth::worker {

class LinkClient {
 public:
  LinkClient(Address server, Exposure exposure, AgentHost& host)
      : server_(std::move(server)), exposure_(exposure), host_(host) {}
  // Everything is cancelled and over when it returns.
  ~LinkClient();
  LinkClient(const LinkClient&) = delete;
  LinkClient& operator=(const LinkClient&) = delete;

  void perform(CallOpenSession& action);
  void perform(OpenReattach& action);
  void perform(SendReattach& action);
  void perform(EndReattach& action);
  void perform(OpenLink& action);
  void perform(SendLink& action);
  void perform(CloseConnection& action);
  // Cancels all and waits; later actions do nothing.
  void stop();

 private:
  using ReattachStream = ClientStream<v1::ReattachRequest, v1::ReattachResponse>;
  using LinkStream = ClientStream<v1::LinkRequest, v1::LinkResponse>;
  struct OpenCall;

  // The channel of this attempt; nullptr, and the attempt failed, when there is none.
  v1::Directory::Stub* stub_of(ConnectionId connection);
  void end_connection(ConnectionId connection);
  void failed(ConnectionId connection, const Error& error);
  bool begin_call();
  void end_call();
  // A call that began counts until it is destroyed, not only until it was answered: its context
  // holds the channel, and whoever is the last to let go of gRPC's callback queue waits for the
  // queue's threads, which one of those threads cannot do.
  template <class Call>
  std::shared_ptr<Call> counted(std::unique_ptr<Call> call);

  const Address server_;
  const Exposure exposure_;
  AgentHost& host_;

  std::mutex mutex_;  // guards what follows; never held over a call of gRPC that calls back
  std::condition_variable idle_;
  ConnectionId connection_;
  std::shared_ptr<v1::Directory::Stub> stub_;
  std::shared_ptr<OpenCall> open_call_;
  std::shared_ptr<ReattachStream> reattach_;
  std::shared_ptr<LinkStream> link_;
  size_t calls_ = 0;  // not yet destroyed
  bool is_stopped_ = false;
};

}  // namespace berth::worker
