#include "server/rpc/reattach_reactor.h"

#include <utility>
#include <variant>

#include "common/check.h"
#include "common/rpc_status.h"
#include "server/rpc/door.h"

namespace berth::rpc {

ReattachReactor* ReattachReactor::start(Backend& backend) {
  auto stream = std::make_shared<ReattachReactor>(backend);
  stream->self_ = stream;
  if (const auto admitted = backend.streams.admit(stream); !admitted) stream->end(admitted.error());
  stream->read_next();
  return stream.get();
}

void ReattachReactor::read_next() {
  const std::lock_guard lock(mutex_);
  if (!has_ended_) StartRead(&request_);
}

bool ReattachReactor::has_ended() {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

void ReattachReactor::OnReadDone(bool ok) {
  // The worker starts again from the beginning; until then the session stays detached.
  if (!ok) return finish(grpc::Status::OK);
  if (has_ended()) return;
  Result<Command> command = next_command();
  if (!command) return end(command.error());
  submit(std::move(*command));
}

Result<Command> ReattachReactor::next_command() {
  if (!caller_.session.valid()) return begin();
  const auto view = backend_.sequencer.view();
  const RequestContext context = backend_.context(view, caller_);
  switch (request_.body_case()) {
    case v1::ReattachRequest::kChunk:
      return to_command(request_.chunk(), is_foreign_store_, context)
          .map([](ReconcileChunk&& chunk) { return Command(std::move(chunk)); });
    case v1::ReattachRequest::kEnd:
      return to_command(request_.end(), context).map([this](EndReattach&& command) {
        ending_ = std::move(command);
        return Command(ending_);
      });
    case v1::ReattachRequest::kHello:
    case v1::ReattachRequest::BODY_NOT_SET:
      break;
  }
  return refuse(Reason::kInvalidArgument,
                "body: not expected here; accepted: chunk or end, after one hello");
}

Result<Command> ReattachReactor::begin() {
  if (!request_.has_hello())
    return refuse(Reason::kInvalidArgument,
                  "body: the first message of a Reattach is its hello; accepted: hello");
  const auto view = backend_.sequencer.view();
  const auto caller = authenticate(*view, request_.hello().caller());
  if (!caller) return tl::unexpected(caller.error());
  caller_ = *caller;
  return to_command(request_.hello(), backend_.context(view, caller_))
      .map([](BeginReattach&& command) { return Command(command); });
}

void ReattachReactor::submit(Command command) {
  backend_.sequencer.submit(std::move(command),
                            [self = shared_from_this()](const Result<Outcome>& outcome) {
                              if (outcome)
                                self->take(*outcome);
                              else
                                self->end(outcome.error());
                            });
}

void ReattachReactor::take(const Outcome& outcome) {
  v1::ReattachResponse message;
  if (const auto* begun = std::get_if<ReattachBegun>(&outcome)) {
    caller_.incarnation = begun->incarnation;
    is_foreign_store_ = begun->foreign_store;
    backend_.links.end_older(caller_.session, caller_.incarnation);
    const auto view = backend_.sequencer.view();
    fill(message.mutable_welcome(), *begun, backend_.context(view));
  } else if (const auto* reconciled = std::get_if<ChunkReconciled>(&outcome)) {
    fill(message.mutable_verdicts(), *reconciled);
  } else {
    const auto* ended = std::get_if<ReattachEnded>(&outcome);
    BERTH_CHECK(ended, "the outcome is not that of a re-attach command");
    if (ended->more) return submit(ending_);
    message.mutable_done()->set_dropped(ended->dropped);
    is_over_ = true;
  }
  write(std::move(message));
}

void ReattachReactor::write(v1::ReattachResponse message) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  response_ = std::move(message);
  is_writing_ = true;
  StartWrite(&response_);
}

void ReattachReactor::OnWriteDone(bool ok) {
  {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (has_ended_) return Finish(end_status_);
  }
  if (!ok) return finish(grpc::Status::CANCELLED);
  if (is_over_) return finish(grpc::Status::OK);
  read_next();
}

void ReattachReactor::end(const Error& why) { finish(status_from_error(why)); }

void ReattachReactor::finish(const grpc::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    end_status_ = status;
    // With a write in flight the call is finished once that is done.
    if (!is_writing_) Finish(status);
  }
  backend_.streams.forget(this);
}

void ReattachReactor::OnCancel() { finish(grpc::Status::CANCELLED); }

void ReattachReactor::OnDone() {
  // Whoever finished the call, on whatever thread, has let go of it.
  { const std::lock_guard lock(mutex_); }
  self_.reset();
}

}  // namespace berth::rpc
