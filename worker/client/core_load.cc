// The load half of Core: load, wait, renew, release.
#include <utility>

#include "worker/client/core.h"
#include "worker/client/translate.h"

namespace berth::client {
namespace {

// On top of what the worker may wait: its answer travels too.
constexpr Duration kWaitMargin = milliseconds(100);

}  // namespace

Result<LoadHandle> Core::load(const ChainRequest& request, Duration ttl) {
  Result<v1::LoadRequest> message = to_load_request(request, ttl, batch_items_max());
  if (!message) return tl::unexpected(message.error());
  const std::optional<Ticket> ticket = admit(Kind::kLoad);
  if (!ticket) return missed_load();

  message->set_operation(ticket->operation);
  *message->mutable_caller() = ticket->caller;
  v1::LoadResponse response;
  const CallOutcome outcome = call_patiently(*ticket, &v1::Worker::StubInterface::Load, *message,
                                             &response, options_.load_deadline);
  if (outcome.end == CallEnd::kAnswered) return hand_out_load(*ticket, response, request);
  if (std::optional<Error> error = conclude_unanswered(*ticket, outcome, *message))
    return tl::unexpected(std::move(*error));
  return missed_load();
}

LoadHandle Core::missed_load() {
  count_unavailable(1, 0);
  auto record = std::make_shared<LoadRecord>();
  record->miss_reason = MissReason::kUnavailable;
  return LoadHandle(std::move(record));
}

Result<LoadHandle> Core::hand_out_load(const Ticket& ticket, const v1::LoadResponse& response,
                                       const ChainRequest& request) {
  auto record = std::make_shared<LoadRecord>();
  record->core = shared_from_this();
  record->session = ticket.attachment->session;
  record->maps = ticket.maps;
  record->detached = ticket.attachment->detached;
  record->shards = request.name_space.shards;
  record->parts = request.name_space.parts;
  const Result<uint32_t> filled =
      fill_load(response, request.digests.size() / request.name_space.digest_bytes, *record);

  const std::lock_guard lock(mutex_);
  Session& session = *record->session;
  const Answer answer = session.answer_operation(ticket.operation);
  if (filled) stats_.spans_refused += *filled;
  const bool is_lost = answer == Answer::kPoisoned || record->detached->load();
  if (is_lost || !filled || record->classes.empty()) {
    if (response.handle() != 0) owe_release_locked(session, response.handle());
    if (!filled) return tl::unexpected(filled.error());
    auto missed = std::make_shared<LoadRecord>();
    missed->miss_reason = is_lost ? MissReason::kUnavailable : record->miss_reason;
    stats_.misses_unavailable += is_lost ? 1 : 0;
    return LoadHandle(std::move(missed));
  }
  record->handle = response.handle();
  session.hold_load(record->handle, record->stopped);
  return LoadHandle(std::move(record));
}

Result<LoadState> Core::wait(LoadRecord& record, Duration within) {
  const Time until = now() + within;
  for (int attempt = 0; record.state == LoadState::kPending; ++attempt) {
    if (!record.is_valid()) return refuse(Reason::kRejoin, "the handle is not good any more");
    const Duration left = until - now();
    if (left.millis <= 0) return refuse(Reason::kDeadlineExceeded, "the load is still pending");
    const std::optional<Ticket> ticket = admit(Kind::kPlain);
    if (!ticket) {
      if (!pause(attempt, until))
        return refuse(Reason::kDeadlineExceeded, "the worker is out of reach");
      continue;
    }
    v1::WaitRequest request;
    *request.mutable_caller() = ticket->caller;
    request.set_handle(record.handle);
    request.set_timeout_ms(static_cast<uint32_t>(left.millis));
    v1::WaitResponse response;
    const CallOutcome outcome = call_once(*ticket, &v1::Worker::StubInterface::Wait, request,
                                          &response, left + kWaitMargin);
    if (outcome.end == CallEnd::kRefused && refusal_of(outcome.error.reason) == Refusal::kFinal)
      return tl::unexpected(outcome.error);
    if (outcome.end != CallEnd::kAnswered) {
      if (!pause(attempt, until))
        return refuse(Reason::kDeadlineExceeded, "the worker is out of reach");
      continue;
    }
    if (response.has_load())
      if (const Result<uint32_t> filled = fill_load(response.load(), record.classes.size(), record);
          !filled)
        return tl::unexpected(filled.error());
    record.state = static_cast<LoadState>(response.state());
  }
  return record.state;
}

void Core::release(std::span<LoadHandle> handles) {
  std::vector<uint64_t> now_out;
  std::optional<Ticket> ticket;
  {
    const std::lock_guard lock(mutex_);
    if (attachment_) ticket = background_ticket_locked();
    for (LoadHandle& handle : handles) {
      if (!handle.record_ || handle.record_->handle == 0) continue;
      LoadRecord& record = *handle.record_;
      record.session->drop_load(record.handle);
      if (ticket && record.session == ticket->attachment->session)
        now_out.push_back(record.handle);
      else
        owe_release_locked(*record.session, record.handle);
      record.handle = 0;
    }
  }
  for (LoadHandle& handle : handles) handle = LoadHandle();
  if (now_out.empty()) return;

  v1::WorkerReleaseRequest request;
  *request.mutable_caller() = ticket->caller;
  request.mutable_handles()->Add(now_out.begin(), now_out.end());
  v1::WorkerReleaseResponse response;
  const CallOutcome outcome = call_once(*ticket, &v1::Worker::StubInterface::Release, request,
                                        &response, options_.control_deadline);
  if (outcome.end == CallEnd::kAnswered) return;
  const std::lock_guard lock(mutex_);
  for (const uint64_t handle : now_out) owe_release_locked(*ticket->attachment->session, handle);
}

Result<std::vector<bool>> Core::renew(std::span<const LoadHandle* const> handles, Duration ttl) {
  const std::optional<Ticket> ticket = admit(Kind::kPlain);
  if (!ticket) return refuse(Reason::kUnavailable, "no worker is joined, or it does not answer");
  v1::WorkerRenewRequest request;
  *request.mutable_caller() = ticket->caller;
  request.set_ttl_ms(static_cast<uint32_t>(ttl.millis));
  std::vector<size_t> asked;  // indexes into handles
  for (size_t i = 0; i < handles.size(); ++i) {
    const LoadRecord* record = handles[i]->record_.get();
    if (!record || record->handle == 0 || record->detached != ticket->attachment->detached)
      continue;
    request.add_handles(record->handle);
    asked.push_back(i);
  }
  v1::WorkerRenewResponse response;
  const CallOutcome outcome = call_once(*ticket, &v1::Worker::StubInterface::Renew, request,
                                        &response, options_.control_deadline);
  if (outcome.end != CallEnd::kAnswered) return tl::unexpected(outcome.error);
  if (response.renewed().size() != asked.size())
    return refuse(Reason::kInternal, "the worker's answer does not fit together: renew");
  std::vector<bool> renewed(handles.size(), false);
  for (size_t i = 0; i < asked.size(); ++i) {
    renewed[asked[i]] = response.renewed()[i] != 0;
    // A lease that was not renewed is never revived: the reader must not trust what it reads from
    // now on.
    if (!renewed[asked[i]]) handles[asked[i]]->record_->stopped->store(true);
  }
  return renewed;
}

void Core::forget(LoadRecord& record) {
  const std::lock_guard lock(mutex_);
  if (record.handle == 0) return;
  record.session->drop_load(record.handle);
  owe_release_locked(*record.session, record.handle);
  record.handle = 0;
}

}  // namespace berth::client
