// The join thread of Core: holds the Join stream, and joins again when it ends.
#include <utility>

#include "common/log.h"
#include "worker/client/core.h"

namespace berth::client {
namespace {

constexpr size_t kPoolsMax = 512;  // mapped at once, those of other workers included

}  // namespace

void Core::run_join() {
  Duration back_off = options_.rejoin_after_min;
  while (true) {
    const JoinEnd end = join_once();
    back_off = end == JoinEnd::kJoined ? options_.rejoin_after_min
                                       : std::min(back_off * 2, options_.rejoin_after_max);
    Lock lock(mutex_);
    const auto is_over = [this] { return stopping_ || left_; };
    // Without a session to resume the next try is another request.
    const Duration wait =
        end == JoinEnd::kSessionOver ? Duration{0} : jittered(back_off, chance_locked());
    if (changed_.wait_for(lock, std::chrono::milliseconds(wait.millis), is_over)) return;
  }
}

Core::JoinEnd Core::join_once() {
  const auto stream = std::make_shared<JoinStream>(options_);
  std::shared_ptr<Session> previous;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || left_) return JoinEnd::kRefused;
    join_stream_ = stream;
    handshake_until_ = now() + options_.join_deadline;
    previous = session_;
    changed_.notify_all();
  }
  auto attachment = stream->open(previous);
  {
    const std::lock_guard lock(mutex_);
    handshake_until_.reset();
  }
  Result<> joined =
      attachment ? reopen_namespaces(*attachment) : tl::unexpected(attachment.error());
  if (joined) {
    publish(*attachment);
    serve(*stream, *attachment);
  }
  {
    const std::lock_guard lock(mutex_);
    join_stream_.reset();
  }
  return joined ? JoinEnd::kJoined : note_join_refused(previous, joined.error());
}

// A worker process knows only the namespaces that were opened through it, and their ids are the
// server's: what the user holds is good again. A namespace that is refused now is the next caller's
// error.
Result<> Core::reopen_namespaces(const std::shared_ptr<Attachment>& attachment) {
  v1::WorkerOpenNamespaceRequest request;
  std::map<std::string, v1::NamespaceSpec> namespaces;
  {
    const std::lock_guard lock(mutex_);
    *request.mutable_caller() = caller_locked(*attachment);
    namespaces = namespaces_;
  }
  for (const auto& [name, spec] : namespaces) {
    *request.mutable_spec() = spec;
    v1::OpenNamespaceResponse response;
    const CallOutcome outcome = call(*attachment, &v1::Worker::StubInterface::OpenNamespace,
                                     request, &response, options_.control_deadline);
    const bool is_settled =
        outcome.end == CallEnd::kAnswered ||
        (outcome.end == CallEnd::kRefused && refusal_of(outcome.error.reason) == Refusal::kFinal);
    if (!is_settled) return tl::unexpected(outcome.error);
  }
  return {};
}

void Core::publish(const std::shared_ptr<Attachment>& attachment) {
  Lock lock(mutex_);
  attachment->session->resume(attachment->token, attachment->operation_used);
  session_ = attachment->session;
  attachment_ = attachment;
  life_ = attachment->life;
  breaker_.reset();
  join_refused_.reset();
  pay_at_ = now();
  pay_back_off_ = {0};
  ++stats_.joins;
  stats_.server_reachable = true;  // until the worker says otherwise
  changed_.notify_all();
  const uint64_t joins = stats_.joins;
  lock.unlock();
  log::info("worker_joined", {{"worker", attachment->worker_name},
                              {"session", attachment->session->id()},
                              {"joins", joins}});
}

void Core::serve(JoinStream& stream, const std::shared_ptr<Attachment>& attachment) {
  while (const std::optional<v1::JoinResponse> message = stream.read())
    if (!handle_message(stream, attachment, *message)) break;
  Lock lock(mutex_);
  const bool is_news = !stopping_ && !left_;
  detach_locked(attachment, SessionEnd::kResumable);
  lock.unlock();
  if (is_news) log::warning("worker_lost", {{"worker", attachment->worker_name}});
}

// False: the join is over.
bool Core::handle_message(JoinStream& stream, const std::shared_ptr<Attachment>& attachment,
                          const v1::JoinResponse& message) {
  if (message.has_pool_added()) add_pool(stream, attachment, message.pool_added());
  if (message.has_pool_gone()) drop_pool(attachment, PoolId(message.pool_gone().pool()));
  OperationNumber poisoned = 0;
  {
    const std::lock_guard lock(mutex_);
    Session& session = *attachment->session;
    switch (message.body_case()) {
      case v1::JoinResponse::kCancel:
        poisoned = message.cancel().operation();
        if (session.cancel(poisoned)) ++stats_.cancels;
        break;
      case v1::JoinResponse::kRevoke:
        poisoned = message.revoke().operation();
        if (session.revoke(poisoned, message.revoke().handle()))
          ++stats_.revokes;
        else if (!session.owes_release(message.revoke().handle()))
          // Not read here: perhaps its release died with the worker.
          owe_release_locked(session, message.revoke().handle());
        break;
      case v1::JoinResponse::kServerState:
        stats_.server_reachable = message.server_state().reachable();
        break;
      case v1::JoinResponse::kRejoin:
        detach_locked(attachment, SessionEnd::kOver);
        return false;
      default:
        break;  // of a newer protocol version
    }
  }
  if (poisoned != 0) stream.send_poisoned(poisoned);
  return true;
}

// A pool of another worker. Without it the join is as good as before.
void Core::add_pool(JoinStream& stream, const std::shared_ptr<Attachment>& attachment,
                    const v1::JoinPoolAdded& added) {
  Result<PoolMapping> mapping = stream.fetch(added);
  if (!mapping) {
    log::warning("pool_not_mapped",
                 {{"pool", added.pool().name()}, {"message", mapping.error().message}});
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!attachment->maps || attachment->maps->pool_count() >= kPoolsMax)
    return;  // it left, or: enough
  replace_maps_locked(*attachment, attachment->maps->with(std::move(*mapping)));
}

// Handles that read from it keep it mapped until they are gone.
void Core::drop_pool(const std::shared_ptr<Attachment>& attachment, PoolId pool) {
  std::shared_ptr<const PoolMaps> before;  // unmapped outside of the lock
  const std::lock_guard lock(mutex_);
  before = attachment->maps;
  if (before) replace_maps_locked(*attachment, before->without(pool));
}

void Core::replace_maps_locked(Attachment& attachment, PoolMaps maps) {
  std::erase_if(attachment.earlier_maps, [](const auto& earlier) { return earlier.expired(); });
  attachment.earlier_maps.push_back(attachment.maps);
  attachment.maps = std::make_shared<const PoolMaps>(std::move(maps));
}

Core::JoinEnd Core::note_join_refused(const std::shared_ptr<Session>& asked_for,
                                      const Error& error) {
  Lock lock(mutex_);
  const bool is_session_over =
      asked_for && refusal_of(error.reason) == Refusal::kSessionOver && session_ == asked_for;
  if (is_session_over) end_session_locked();
  const bool is_news = !stopping_ && (!join_refused_ || join_refused_->reason != error.reason);
  join_refused_ = error;
  changed_.notify_all();
  lock.unlock();
  if (is_news) log::warning("join_refused", {{"reason", error.reason}, {"message", error.message}});
  return is_session_over ? JoinEnd::kSessionOver : JoinEnd::kRefused;
}

}  // namespace berth::client
