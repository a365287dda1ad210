// One asynchronous unary call at a time, made again and again. Lives on the event loop: started and
// answered under its mutex, and destroyed only while no call is under way.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/support/async_unary_call.h>

#include <functional>
#include <memory>
#include <optional>

#include "common/rpc_channel.h"
#include "tests/bench/rpc/event_loop.h"

namespace berth::bench {

// Ends a call that hangs; nothing that is measured comes near it.
inline constexpr Duration kCallWithin = seconds(30);

template <class Request, class Response>
class UnaryCall final : public Event {
 public:
  using Done = std::function<void(const grpc::Status&)>;
  explicit UnaryCall(Done done) : done_(std::move(done)) {}

  // `prepare` is PrepareAsync... of the stub.
  template <class Stub, class Prepare>
  void start(EventLoop& loop, Stub& stub, Prepare prepare, const Request& request) {
    reader_.reset();  // lies in memory of the context's call
    context_.emplace();
    set_deadline(*context_, kCallWithin);
    reader_ = (stub.*prepare)(&*context_, request, &loop.queue());
    reader_->StartCall();
    reader_->Finish(&response, &status_, static_cast<Event*>(this));
  }
  void on_event(bool) override { done_(status_); }

  Response response;

 private:
  Done done_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  grpc::Status status_;
};

}  // namespace berth::bench
