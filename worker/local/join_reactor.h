// One open Join stream: hello in, welcome and the server's wishes out. It belongs to gRPC until
// OnDone; everybody else holds it weakly, by its JoinId.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "berth/v1/worker.pb.h"
#include "common/error.h"
#include "worker/session/actions.h"

namespace berth::worker {

// A client that leaves this many messages unread is not listening: its stream ends.
inline constexpr size_t kJoinQueueMax = 4096;

class JoinReactor final : public grpc::ServerBidiReactor<v1::JoinRequest, v1::JoinResponse>,
                          public std::enable_shared_from_this<JoinReactor> {
 public:
  // Who is told. Called outside of the lock.
  class Listener {
   public:
    virtual ~Listener() = default;
    // Errors end the stream.
    virtual Result<> greeted(JoinId join, const v1::JoinHello& hello) = 0;
    virtual void poisoned(JoinId join, OperationNumber operation) = 0;
    // The stream can carry nothing any more. Also called once more when it ended while greeted()
    // was at work, so that the last word is always this.
    virtual void ended(JoinId join) = 0;
    // Once, last: gRPC is done with it.
    virtual void done(JoinId join) = 0;
  };

  JoinReactor(JoinId join, Listener& listener) : join_(join), listener_(listener) {}
  void start() { read_next(); }

  void write(v1::JoinResponse message);
  // After what was written before.
  void end(const Error& error);

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;
  void read_next();
  bool is_over();
  bool take(const v1::JoinRequest& request);
  enum class Unwritten { kWrite, kDrop };
  void finish(const grpc::Status& status, Unwritten unwritten);
  void write_next();  // with mutex_ held

  const JoinId join_;
  Listener& listener_;
  v1::JoinRequest request_;
  bool is_greeted_ = false;  // of the reading side

  std::mutex mutex_;  // guards what follows
  std::deque<v1::JoinResponse> queue_;
  v1::JoinResponse response_;  // being written
  bool is_writing_ = false;
  bool is_over_ = false;
  grpc::Status status_;  // to finish with once nothing is being written
};

}  // namespace berth::worker
