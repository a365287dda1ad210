// The messages of one method's calls, and the count of those calls, which the interceptor would
// take at the price of one more round through gRPC's queue for every step of a call.
//
//   call arrives ─▶ AllocateMessages(): an empty request and response, and the time
//   its handler  ─▶ counted(context).ended(code), once
//   gRPC is done ─▶ Release(): what was allocated is kept for a later call
//
// A request that cannot be read never gets to a handler: gRPC answers it, and it is counted when it
// is released. Thread-safe. Outlives the server.
#pragma once

#include <grpcpp/support/message_allocator.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/rpc/call_metrics.h"

namespace berth::rpc {

// One call on its way.
class CountedCall {
 public:
  CountedCall(const CallMetrics& metrics, const CallMetrics::Method& method)
      : metrics_(metrics), method_(method) {}

  void arrived() {
    started_nanos_ = metrics_.now_nanos();
    has_ended_.store(false, std::memory_order_release);
  }
  // Before the call is finished: then it may be released at any moment, on any thread.
  void ended(int code) {
    metrics_.observe(method_, code, started_nanos_);
    has_ended_.store(true, std::memory_order_release);
  }
  bool has_ended() const { return has_ended_.load(std::memory_order_acquire); }

 private:
  const CallMetrics& metrics_;
  const CallMetrics::Method& method_;
  int64_t started_nanos_ = 0;
  std::atomic<bool> has_ended_ = false;
};

template <class Request, class Response>
class CallMessages final : public grpc::MessageAllocator<Request, Response> {
 public:
  // Takes the method over from the interceptor: before the server starts.
  CallMessages(CallMetrics& metrics, std::string_view path)
      : metrics_(metrics), method_(metrics.take_over(path)) {}
  // Whoever gave back the last ones has let go of them.
  ~CallMessages() override { const std::lock_guard lock(mutex_); }
  CallMessages(const CallMessages&) = delete;
  CallMessages& operator=(const CallMessages&) = delete;

  grpc::MessageHolder<Request, Response>* AllocateMessages() override {
    std::unique_ptr<Messages> messages = take_spare();
    if (!messages) messages = std::make_unique<Messages>(*this);
    messages->begin();
    return messages.release();  // until Release()
  }

  static CountedCall& counted(grpc::CallbackServerContext& context) {
    return *static_cast<Messages*>(context.GetRpcAllocatorState());
  }

 private:
  // Calls at once beyond it allocate their own.
  static constexpr size_t kSparesMax = 64;

  class Messages final : public grpc::MessageHolder<Request, Response>, public CountedCall {
   public:
    explicit Messages(CallMessages& owner)
        : CountedCall(owner.metrics_, owner.method_), owner_(owner) {}

    void begin() {
      this->set_request(&request_.emplace());
      this->set_response(&response_.emplace());
      arrived();
    }
    void Release() override {
      if (!has_ended()) ended(grpc::StatusCode::UNIMPLEMENTED);
      // Not cleared: one large message would keep its memory for good.
      request_.reset();
      response_.reset();
      owner_.keep(std::unique_ptr<Messages>(this));
    }

   private:
    CallMessages& owner_;
    std::optional<Request> request_;
    std::optional<Response> response_;
  };

  std::unique_ptr<Messages> take_spare() {
    const std::lock_guard lock(mutex_);
    if (spares_.empty()) return nullptr;
    std::unique_ptr<Messages> spare = std::move(spares_.back());
    spares_.pop_back();
    return spare;
  }
  void keep(std::unique_ptr<Messages> messages) {
    const std::lock_guard lock(mutex_);
    if (spares_.size() < kSparesMax) spares_.push_back(std::move(messages));
  }

  CallMetrics& metrics_;
  const CallMetrics::Method& method_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Messages>> spares_;
};

}  // namespace berth::rpc
