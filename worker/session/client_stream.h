// One bidirectional stream to berthd over gRPC's callback API: a bounded write queue, messages and
// the end reported by callback. It keeps itself alive until gRPC is done with it.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "common/error.h"
#include "common/rpc_status.h"

namespace berth::worker {

// The agent bounds its requests; a queue this long means that the peer has stopped reading.
inline constexpr size_t kStreamQueueMax = 32768;

template <class Request, class Response>
class ClientStream final : public grpc::ClientBidiReactor<Request, Response> {
 public:
  using OnMessage = std::function<void(const Response&)>;
  // Called once, last.
  using OnEnd = std::function<void(const Error&)>;

  ClientStream(OnMessage on_message, OnEnd on_end)
      : on_message_(std::move(on_message)), on_end_(std::move(on_end)) {}

  grpc::ClientContext& context() { return context_; }

  void start(std::shared_ptr<ClientStream> self) {
    self_ = std::move(self);
    this->AddHold();  // writes come from outside of the reactions
    this->StartRead(&response_);
    this->StartCall();
  }

  enum class Place { kBack, kFront };
  void write(Request message, Place place = Place::kBack) {
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
      if (queue_.size() < kStreamQueueMax) {
        if (place == Place::kFront) {
          queue_.push_front(std::move(message));
        } else {
          queue_.push_back(std::move(message));
        }
        return write_next();
      }
    }
    cancel();
  }
  void writes_done() {
    const std::lock_guard lock(mutex_);
    is_half_closed_ = true;
    write_next();
  }
  void cancel() {
    context_.TryCancel();
    drop_hold();
  }

 private:
  // With mutex_ held.
  void write_next() {
    if (is_writing_ || is_over_ || has_closed_) return;
    if (!queue_.empty()) {
      is_writing_ = true;
      request_ = std::move(queue_.front());
      queue_.pop_front();
      this->StartWrite(&request_);
    } else if (is_half_closed_) {
      has_closed_ = true;
      this->StartWritesDone();
    }
  }
  void drop_hold() {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(is_over_, true)) return;
    }
    this->RemoveHold();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return drop_hold();
    on_message_(response_);
    this->StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return drop_hold();
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    write_next();
  }
  void OnDone(const grpc::Status& status) override {
    const std::shared_ptr<ClientStream> keep = std::move(self_);
    on_end_(status.ok() ? Error{Reason::kUnavailable, "the server ended the stream"}
                        : error_from_status(status));
  }

  grpc::ClientContext context_;
  const OnMessage on_message_;
  const OnEnd on_end_;
  Response response_;
  std::shared_ptr<ClientStream> self_;

  std::mutex mutex_;  // guards what follows
  std::deque<Request> queue_;
  Request request_;  // being written
  bool is_writing_ = false;
  bool is_half_closed_ = false;
  bool has_closed_ = false;
  bool is_over_ = false;
};

}  // namespace berth::worker
