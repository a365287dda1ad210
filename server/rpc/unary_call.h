// One unary call that becomes a command: translate under the view, submit, fill the answer, finish.
// Every path finishes the call exactly once, early refusals included.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <utility>
#include <variant>

#include "common/check.h"
#include "common/rpc_status.h"
#include "server/rpc/backend.h"
#include "server/rpc/door.h"

namespace berth::rpc {

// gRPC's reactor for a call that only finishes.
inline grpc::ServerUnaryReactor* finished(grpc::CallbackServerContext* call, const Result<>& done) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(done ? grpc::Status::OK : status_from_error(done.error()));
  return reactor;
}

// `fill_answer(outcome, context)` runs on the sequencer's thread once the command is done.
template <class Fill>
grpc::ServerUnaryReactor* submitted(Backend& backend, grpc::CallbackServerContext* call,
                                    Result<Command> command, Fill fill_answer) {
  if (!command) return finished(call, tl::unexpected(command.error()));
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  backend.sequencer.submit(std::move(*command),
                           [&backend, reactor, fill_answer](const Result<Outcome>& outcome) {
                             if (!outcome)
                               return reactor->Finish(status_from_error(outcome.error()));
                             backend.items.count(*outcome);
                             {
                               const auto view = backend.sequencer.view();
                               fill_answer(*outcome, backend.context(view));
                             }
                             reactor->Finish(grpc::Status::OK);
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
  if (!command) return tl::unexpected(command.error());
  return Command(std::move(*command));
}

template <class Expected>
const Expected& expect(const Outcome& outcome) {
  const Expected* value = std::get_if<Expected>(&outcome);
  BERTH_CHECK(value, "the outcome is not that of the command");
  return *value;
}

}  // namespace berth::rpc
