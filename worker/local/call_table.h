// Calls of engines that wait for the agent's answer, by the CallId that the agent knows them by.
// Each is finished exactly once, by answer() or close(); answers to others are ignored.
// Thread-safe.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <mutex>
#include <unordered_map>

#include "worker/session/actions.h"

namespace berth::worker {

class CallTable {
 public:
  explicit CallTable(size_t calls_max) : calls_max_(calls_max) {}

  // Puts the reply where gRPC sends it from.
  using Fill = std::function<void(Reply&)>;
  // None when there are as many as there may be, or at the end; the call is the caller's to finish.
  CallId add(grpc::ServerUnaryReactor* reactor, Fill fill);
  void answer(Answer& answer);
  // Every call that waits gets this; none is taken any more.
  void close(const Error& error);

 private:
  struct Waiting {
    grpc::ServerUnaryReactor* reactor;
    Fill fill;
  };
  const size_t calls_max_;
  std::mutex mutex_;  // guards what follows
  uint64_t calls_made_ = 0;
  bool is_closed_ = false;
  std::unordered_map<CallId, Waiting> waiting_;
};

}  // namespace berth::worker
