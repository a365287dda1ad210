// The server's ends of OpenSession, Reattach and Link.
#include "common/check.h"
#include "common/rpc_status.h"
#include "server/rpc/door.h"
#include "tests/sim/server_run.h"

namespace berth::sim {

rpc::RequestContext Server::context(const Caller& caller) {
  return {run_->directory, config(), caller, random_.id128()};
}

// ---- OpenSession
// -------------------------------------------------------------------------------------------

void Server::open_session(const v1::OpenSessionRequest& request, SessionReply reply) {
  scheduling_.run([this, request, reply = std::move(reply)] {
    if (!run_) return reply(refuse(Reason::kUnavailable, "connection refused"));
    Result<Command> command = rpc::to_command(request, context({}));
    if (!command) return reply(tl::unexpected(command.error()));
    submit(Queued{std::move(*command),
                  [this, reply](const Result<Outcome>& outcome) {
                    if (!outcome) return reply(tl::unexpected(outcome.error()));
                    v1::OpenSessionResponse response;
                    rpc::fill(&response, std::get<WorkerOpened>(*outcome), context({}));
                    reply(std::move(response));
                  },
                  {},
                  0,
                  {}});
  });
}

// ---- Link
// ---------------------------------------------------------------------------------------------------

void Server::open_link(const std::shared_ptr<Stream>& stream) {
  scheduling_.run([this, stream] {
    if (!run_) return stream->close(Side::kServer, {Reason::kUnavailable, "connection refused"});
    auto end = std::make_shared<LinkEnd>(*this, stream);
    run_->links[stream] = end;
    stream->on_end(Side::kServer,
                   [this, end](const Error&) { scheduling_.run([end] { end->peer_ended(); }); });
  });
}

void Server::link_received(const std::shared_ptr<Stream>& stream, const v1::LinkRequest& message) {
  scheduling_.run([this, stream, message] {
    if (!run_) return;
    const auto it = run_->links.find(stream);
    if (it == run_->links.end()) return;
    const std::shared_ptr<LinkEnd> end = it->second;
    end->receive(message);
  });
}

void Server::LinkEnd::receive(const v1::LinkRequest& request) {
  if (is_over()) return;
  if (!is_introduced_) return introduce(request);
  if (!rpc::is_query(request)) return take_command(request);
  v1::LinkResponse message;
  message.set_correlation(request.correlation());
  const Result<> answered =
      rpc::answer(request, server_.is_degraded(), server_.context(caller_), &message);
  if (!answered) return refuse_request(request.correlation(), answered.error());
  push(std::move(message));
}

void Server::LinkEnd::introduce(const v1::LinkRequest& first) {
  if (!first.has_hello()) return end({Reason::kInvalidArgument, "the first message is the hello"});
  const Result<Caller> caller = rpc::authenticate(server_.run_->directory, first.hello().caller());
  if (!caller) return end(caller.error());
  caller_ = *caller;
  is_introduced_ = true;
  const auto claimed =
      server_.run_->link_table.claim(caller_.session, caller_.incarnation, shared_from_this());
  if (!claimed) return end(claimed.error());
  is_up_ = true;
  server_.submit(Queued{LinkUp{caller_},
                        [self = shared_from_this()](const Result<Outcome>& outcome) {
                          if (self->is_over()) return;
                          if (!outcome) return self->end(outcome.error());
                          v1::LinkResponse message;
                          rpc::fill(message.mutable_welcome()->mutable_store(),
                                    self->server_.run_->directory);
                          self->push(std::move(message));
                        },
                        caller_.session, caller_.incarnation});
}

void Server::LinkEnd::take_command(const v1::LinkRequest& request) {
  server_.judge_.trace([&] { return "server: is told " + request.ShortDebugString(); });
  Result<Command> command = rpc::to_command(request, server_.context(caller_));
  if (!command) return refuse_request(request.correlation(), command.error());
  const Asked asked{request.body_case(), request.correlation(), request.heartbeat().sequence()};
  server_.submit(Queued{std::move(*command),
                        [self = shared_from_this(), asked](const Result<Outcome>& outcome) {
                          if (!self->is_over()) self->reply(asked, outcome);
                        },
                        caller_.session, caller_.incarnation});
}

void Server::LinkEnd::reply(const Asked& asked, const Result<Outcome>& outcome) {
  if (asked.kind == v1::LinkRequest::kHeartbeat) {
    if (outcome) {
      v1::LinkResponse seen;
      seen.mutable_heartbeat_seen()->set_sequence(asked.sequence);
      return push(std::move(seen));
    }
    if (rpc::ends_link(outcome.error().reason)) end(outcome.error());
    return;
  }
  if (!outcome) return refuse_request(asked.correlation, outcome.error());
  if (asked.correlation == 0) return;
  v1::LinkResponse message;
  message.set_correlation(asked.correlation);
  rpc::fill(&message, asked.kind, *outcome, server_.context(caller_));
  push(std::move(message));
}

void Server::LinkEnd::refuse_request(uint64_t correlation, const Error& error) {
  if (correlation == 0) return;
  v1::LinkResponse message;
  message.set_correlation(correlation);
  *message.mutable_error() = details_from_error(error);
  push(std::move(message));
}

void Server::LinkEnd::ask(const Ask& ask) { push(rpc::to_message(ask)); }

void Server::LinkEnd::push(v1::LinkResponse message) {
  if (is_over()) return;
  server_.judge_.trace([&] {
    return "server: says " +
           (message.has_error() ? "no: " + message.error().message() : message.ShortDebugString());
  });
  stream_->send(Side::kWorker,
                [this_server = &server_, stream = stream_, message = std::move(message)] {
                  this_server->link_answer(stream, message);
                });
}

void Server::LinkEnd::end(const Error& why) {
  if (is_over()) return;
  has_ended_ = true;
  stream_->close(Side::kServer, error_from_details(details_from_error(why)));
  link_down();
}

void Server::LinkEnd::peer_ended() {
  if (is_over()) return;
  has_ended_ = true;
  link_down();
}

void Server::LinkEnd::link_down() {
  const auto self = shared_from_this();  // the table below may hold the last reference
  server_.run_->links.erase(stream_);
  if (!std::exchange(is_up_, false)) return;
  server_.run_->link_table.release(caller_.session, caller_.incarnation);
  server_.submit(Queued{LinkDown{caller_.session, caller_.incarnation},
                        [](const Result<Outcome>&) {}, caller_.session, caller_.incarnation});
}

// ---- Reattach
// -----------------------------------------------------------------------------------------------

void Server::open_reattach(const std::shared_ptr<Stream>& stream) {
  scheduling_.run([this, stream] {
    if (!run_) return stream->close(Side::kServer, {Reason::kUnavailable, "connection refused"});
    auto end = std::make_shared<ReattachEnd>(*this, stream);
    run_->reattaches[stream] = end;
    stream->on_end(Side::kServer,
                   [this, end](const Error&) { scheduling_.run([end] { end->peer_ended(); }); });
  });
}

void Server::reattach_received(const std::shared_ptr<Stream>& stream,
                               const v1::ReattachRequest& message) {
  scheduling_.run([this, stream, message] {
    if (!run_) return;
    const auto it = run_->reattaches.find(stream);
    if (it == run_->reattaches.end()) return;
    const std::shared_ptr<ReattachEnd> end = it->second;
    end->receive(message);
  });
}

void Server::ReattachEnd::receive(const v1::ReattachRequest& request) {
  if (is_over()) return;
  coming_.push_back(request);
  take_next();
}

void Server::ReattachEnd::take_next() {
  if (is_over() || is_busy_ || coming_.empty()) return;
  const v1::ReattachRequest request = std::move(coming_.front());
  coming_.pop_front();
  Result<Command> command = command_of(request);
  if (!command) return end(command.error());
  submit(std::move(*command));
}

Result<Command> Server::ReattachEnd::command_of(const v1::ReattachRequest& request) {
  const auto as_command = [](auto&& one) { return Command(std::move(one)); };
  if (request.has_hello()) {
    const Result<Caller> caller =
        rpc::authenticate(server_.run_->directory, request.hello().caller());
    if (!caller) return tl::unexpected(caller.error());
    caller_ = *caller;
    return rpc::to_command(request.hello(), server_.context(caller_)).map(as_command);
  }
  if (request.has_chunk())
    return rpc::to_command(request.chunk(), is_foreign_store_, server_.context(caller_))
        .map(as_command);
  return rpc::to_command(request.end(), server_.context(caller_))
      .map([this](berth::EndReattach&& command) {
        ending_ = std::move(command);
        return Command(ending_);
      });
}

void Server::ReattachEnd::submit(Command command) {
  is_busy_ = true;
  const bool begins = std::holds_alternative<BeginReattach>(command);
  server_.submit(Queued{std::move(command),
                        [self = shared_from_this()](const Result<Outcome>& outcome) {
                          if (self->is_over()) return;
                          self->is_busy_ = false;
                          if (!outcome) return self->end(outcome.error());
                          self->take(*outcome);
                        },
                        begins ? SessionId() : caller_.session, caller_.incarnation});
}

void Server::ReattachEnd::take(const Outcome& outcome) {
  v1::ReattachResponse message;
  if (const auto* begun = std::get_if<ReattachBegun>(&outcome)) {
    caller_.incarnation = begun->incarnation;
    is_foreign_store_ = begun->foreign_store;
    if (server_.plant_ != Plant::kStaleIncarnationAccepted)
      server_.run_->link_table.end_older(caller_.session, caller_.incarnation);
    rpc::fill(message.mutable_welcome(), *begun, server_.context(caller_));
  } else if (const auto* reconciled = std::get_if<ChunkReconciled>(&outcome)) {
    rpc::fill(message.mutable_verdicts(), *reconciled);
  } else {
    const auto& ended = std::get<ReattachEnded>(outcome);
    if (ended.more) return submit(ending_);
    message.mutable_done()->set_dropped(ended.dropped);
  }
  write(std::move(message));
  take_next();
}

void Server::ReattachEnd::write(v1::ReattachResponse message) {
  stream_->send(Side::kWorker,
                [this_server = &server_, stream = stream_, message = std::move(message)] {
                  this_server->reattach_answer(stream, message);
                });
}

void Server::ReattachEnd::end(const Error& why) {
  if (is_over()) return;
  has_ended_ = true;
  stream_->close(Side::kServer, error_from_details(details_from_error(why)));
}

}  // namespace berth::sim
