// One unary call that becomes a command: translate under the view, submit, fill the answer, finish.
// Every path finishes the call exactly once, early refusals included.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "common/check.h"
#include "common/rpc_status.h"
#include "server/rpc/backend.h"
#include "server/rpc/call_messages.h"
#include "server/rpc/door.h"

namespace berth::rpc {

// A call to be finished. With `counted` it is counted here, else by the interceptor.
class UnaryCall {
 public:
  UnaryCall(grpc::CallbackServerContext* context, CountedCall* counted = nullptr)
      : reactor_(context->DefaultReactor()), counted_(counted) {}

  // gRPC's reactor for a call that only finishes.
  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  // The call is gone after it.
  void finish(const Result<>& done) const {
    if (counted_) counted_->ended(code_of(done));
    reactor_->Finish(done ? grpc::Status::OK : status_from_error(done.error()));
  }

 private:
  grpc::ServerUnaryReactor* reactor_;
  CountedCall* counted_;
};

inline grpc::ServerUnaryReactor* finished(const UnaryCall& call, const Result<>& done) {
  grpc::ServerUnaryReactor* reactor = call.reactor();
  call.finish(done);
  return reactor;
}

// `fill_answer(outcome)`, or `fill_answer(outcome, context)` where the answer is read from the
// directory, runs on the sequencer's thread once the command is done.
template <class Fill>
grpc::ServerUnaryReactor* submitted(Backend& backend, const UnaryCall& call,
                                    Result<Command> command, Fill fill_answer) {
  if (!command) return finished(call, tl::unexpected(std::move(command.error())));
  grpc::ServerUnaryReactor* reactor = call.reactor();
  backend.sequencer.submit(std::move(*command),
                           [&backend, call, fill_answer](const Result<Outcome>& outcome) {
                             if (!outcome) return call.finish(tl::unexpected(outcome.error()));
                             backend.items.count(*outcome);
                             if constexpr (std::is_invocable_v<Fill, const Outcome&>) {
                               fill_answer(*outcome);
                             } else {
                               const auto view = backend.sequencer.view();
                               fill_answer(*outcome, backend.context(view));
                             }
                             call.finish({});
                           });
  return reactor;
}

// The command of a request whose sender proves who it is.
template <class Request>
Result<Command> command_of(Backend& backend, const Request& request) {
  const auto view = backend.sequencer.view();
  const auto caller = authenticate(*view, request.caller());
  if (!caller) return tl::unexpected(caller.error());
  auto command = to_command(request, backend.context(view, *caller));
  if (!command) return tl::unexpected(std::move(command.error()));
  return Command(std::move(*command));
}

template <class Expected>
const Expected& expect(const Outcome& outcome) {
  const Expected* value = std::get_if<Expected>(&outcome);
  BERTH_CHECK(value, "the outcome is not that of the command");
  return *value;
}

}  // namespace berth::rpc
