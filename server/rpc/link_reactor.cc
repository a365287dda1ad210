#include "server/rpc/link_reactor.h"

#include <utility>

#include "common/log.h"
#include "common/rpc_status.h"
#include "server/rpc/door.h"

namespace berth::rpc {
namespace {

v1::LinkResponse error_message(uint64_t correlation, const Error& error) {
  v1::LinkResponse message;
  message.set_correlation(correlation);
  *message.mutable_error() = details_from_error(error);
  return message;
}

}  // namespace

LinkReactor* LinkReactor::start(Backend& backend, const CallMetrics::Method& calls,
                                grpc::CallbackServerContext& context) {
  auto link = std::make_shared<LinkReactor>(backend, calls, context);
  link->self_ = link;
  // So that the peer knows that the stream is there.
  link->StartSendInitialMetadata();
  if (const auto admitted = backend.streams.admit(link); !admitted) link->end(admitted.error());
  link->read_next();
  return link.get();
}

// ---- Reading ----------------------------------------------------------------------------------

void LinkReactor::read_next() {
  const std::lock_guard lock(mutex_);
  if (!has_ended_) StartRead(&request_);
}

bool LinkReactor::has_ended() {
  const std::lock_guard lock(mutex_);
  return has_ended_;
}

void LinkReactor::OnReadDone(bool ok) {
  if (!ok) return finish(grpc::Status::OK);
  if (has_ended()) return;
  if (is_introduced_)
    take(request_);
  else
    introduce(request_);
  read_next();
}

void LinkReactor::introduce(const v1::LinkRequest& first) {
  if (!first.has_hello())
    return end({Reason::kInvalidArgument,
                "body: the first message of a Link is its hello; accepted: hello"});
  const auto caller = [&]() -> Result<Caller> {
    const auto view = backend_.sequencer.view();
    return authenticate(*view, first.hello().caller());
  }();
  if (!caller) return end(caller.error());
  caller_ = *caller;
  is_introduced_ = true;
  const auto claimed =
      backend_.links.claim(caller_.session, caller_.incarnation, shared_from_this());
  if (!claimed) return end(claimed.error());
  backend_.sequencer.submit(LinkUp{caller_},
                            [self = shared_from_this()](const Result<Outcome>& outcome) {
                              if (outcome)
                                self->welcome();
                              else
                                self->end(outcome.error());
                            });
  bool has_ended = false;
  {
    const std::lock_guard lock(mutex_);
    is_up_ = true;
    has_ended = has_ended_;
  }
  // It ended meanwhile, and could not say so before LinkUp was on its way.
  if (has_ended) link_down();
}

void LinkReactor::welcome() {
  v1::LinkResponse message;
  {
    const auto view = backend_.sequencer.view();
    fill(message.mutable_welcome()->mutable_store(), *view);
  }
  push(std::move(message));
}

void LinkReactor::take(const v1::LinkRequest& request) {
  const Asked asked{request.body_case(), request.correlation(), request.heartbeat().sequence(),
                    backend_.metrics.now_nanos()};
  if (is_query(request))
    take_query(request, asked);
  else
    take_command(request, asked);
}

void LinkReactor::take_query(const v1::LinkRequest& request, const Asked& asked) {
  v1::LinkResponse message;
  message.set_correlation(asked.correlation);
  const bool is_degraded = backend_.sequencer.is_degraded();
  const auto answered = [&] {
    const auto view = backend_.sequencer.view();
    return answer(request, is_degraded, backend_.context(view, caller_), &message);
  }();
  if (!answered) return refuse_request(asked, answered.error());
  if (message.has_probe()) backend_.items.count(message.probe());
  backend_.metrics.observe(backend_.metrics.link_method(asked.kind), 0, asked.started_nanos);
  push(std::move(message));
}

void LinkReactor::take_command(const v1::LinkRequest& request, const Asked& asked) {
  auto command = [&] {
    const Token token = request.has_open_client() ? backend_.fresh_token() : Token{};
    const auto view = backend_.sequencer.view();
    return to_command(request, backend_.context(view, caller_, token));
  }();
  if (!command) return refuse_request(asked, command.error());
  bool is_full = false;
  {
    const std::lock_guard lock(mutex_);
    is_full = unanswered_ >= backend_.config.link_requests_max;
    if (!is_full) ++unanswered_;
  }
  if (is_full)
    return refuse_request(
        asked,
        {Reason::kQueueFull, "this Link has " + std::to_string(backend_.config.link_requests_max) +
                                 " unanswered requests, as many as it may"});
  backend_.sequencer.submit(std::move(*command),
                            [self = shared_from_this(), asked](const Result<Outcome>& outcome) {
                              {
                                const std::lock_guard lock(self->mutex_);
                                --self->unanswered_;
                              }
                              self->reply(asked, outcome);
                            });
}

// ---- Answering ----------------------------------------------------------------------------------

void LinkReactor::reply(const Asked& asked, const Result<Outcome>& outcome) {
  if (asked.kind == v1::LinkRequest::kHeartbeat) return answer_heartbeat(asked, outcome);
  if (!outcome) return refuse_request(asked, outcome.error());
  backend_.items.count(*outcome);
  backend_.metrics.observe(backend_.metrics.link_method(asked.kind), 0, asked.started_nanos);
  if (asked.correlation == 0) return;
  v1::LinkResponse message;
  message.set_correlation(asked.correlation);
  {
    const auto view = backend_.sequencer.view();
    fill(&message, asked.kind, *outcome, backend_.context(view, caller_));
  }
  push(std::move(message));
}

void LinkReactor::refuse_request(const Asked& asked, const Error& error) {
  backend_.metrics.observe(backend_.metrics.link_method(asked.kind),
                           static_cast<int>(row_of(error.reason).code), asked.started_nanos);
  if (asked.correlation != 0) push(error_message(asked.correlation, error));
}

// A heartbeat that the directory refuses has no answer of its own: the worker must re-attach.
void LinkReactor::answer_heartbeat(const Asked& asked, const Result<Outcome>& outcome) {
  backend_.metrics.observe(backend_.metrics.link_method(asked.kind), code_of(outcome),
                           asked.started_nanos);
  if (!outcome) {
    if (ends_link(outcome.error().reason)) end(outcome.error());
    return;
  }
  v1::LinkResponse message;
  message.mutable_heartbeat_seen()->set_sequence(asked.heartbeat_sequence);
  push(std::move(message));
}

void LinkReactor::ask(const Ask& ask) {
  if (ask.kind == Ask::Kind::kReclaim && joins_last_reclaim(ask)) return;
  push(to_message(ask));
}

// An eviction asks replica by replica; what waits goes out as one message.
bool LinkReactor::joins_last_reclaim(const Ask& ask) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty() || !queue_.back().has_reclaim()) return false;
  auto& replicas = *queue_.back().mutable_reclaim()->mutable_replicas();
  if (static_cast<size_t>(replicas.size()) + ask.replicas.size() > kReclaimReplicasMax)
    return false;
  for (const ReplicaId replica : ask.replicas) replicas.Add(replica.value());
  return true;
}

// ---- Writing
// --------------------------------------------------------------------------------------

void LinkReactor::push(v1::LinkResponse message) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    if (queue_.size() < backend_.config.link_messages_max) {
      queue_.push_back(std::move(message));
      if (!is_writing_) write_front();
      return;
    }
  }
  log::warning("link_not_read",
               {{"session", caller_.session}, {"messages", backend_.config.link_messages_max}});
  finish(status_from_error({Reason::kLimitReached, "the peer does not read its Link"}),
         Pending::kCancel);
}

void LinkReactor::write_front() {
  writing_ = std::move(queue_.front());
  queue_.pop_front();
  is_writing_ = true;
  grpc::WriteOptions options;
  // More follows at once: let the transport put them together.
  if (!queue_.empty()) options.set_buffer_hint();
  StartWrite(&writing_, options);
}

void LinkReactor::OnWriteDone(bool ok) {
  bool is_broken = false;
  {
    const std::lock_guard lock(mutex_);
    is_writing_ = false;
    if (may_finish_) finish_call();
    if (has_ended_) return;
    is_broken = !ok;
    if (ok && !queue_.empty()) write_front();
  }
  if (is_broken) finish(grpc::Status::CANCELLED);
}

// ---- The end
// ----------------------------------------------------------------------------------------

void LinkReactor::end(const Error& why) { finish(status_from_error(why)); }

// The session is detached before the peer can know of the end: what it sends next is decided
// without a Link.
void LinkReactor::finish(const grpc::Status& status, Pending pending) {
  {
    const std::lock_guard lock(mutex_);
    if (has_ended_) return;
    has_ended_ = true;
    end_status_ = status;
    queue_.clear();
  }
  backend_.streams.forget(this);
  link_down();
  const std::lock_guard lock(mutex_);
  may_finish_ = true;
  // With a write in flight the call is finished once that is done.
  if (!is_writing_)
    finish_call();
  else if (pending == Pending::kCancel)
    context_.TryCancel();
}

void LinkReactor::finish_call() {
  backend_.metrics.count(calls_, end_status_.error_code());
  Finish(end_status_);
}

void LinkReactor::link_down() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_up_, false)) return;
  }
  backend_.links.release(caller_.session, caller_.incarnation);
  backend_.sequencer.submit(LinkDown{caller_.session, caller_.incarnation},
                            [](const Result<Outcome>&) {});
}

void LinkReactor::OnCancel() { finish(grpc::Status::CANCELLED); }

void LinkReactor::OnDone() {
  // Whoever finished the call, on whatever thread, has let go of it.
  { const std::lock_guard lock(mutex_); }
  self_.reset();
}

}  // namespace berth::rpc
