// The background thread of Core: gives back what is owed, and ends a handshake that takes too long.
#include <set>
#include <utility>
#include <variant>

#include "common/log.h"
#include "worker/client/core.h"

namespace berth::client {
namespace {

constexpr size_t kDebtBatchMax = 1024;
constexpr Duration kPayAgainMin = milliseconds(10);
constexpr Duration kPayAgainMax = seconds(2);
// One background call, so that one that hangs does not keep the others waiting for long.
constexpr Duration kSettleDeadline = seconds(2);

std::vector<uint64_t> front_of(const std::deque<uint64_t>& queue, uint32_t items_max) {
  const size_t bound = items_max == 0 ? kDebtBatchMax : std::min<size_t>(kDebtBatchMax, items_max);
  const auto count = static_cast<std::ptrdiff_t>(std::min(queue.size(), bound));
  return {queue.begin(), queue.begin() + count};
}

void erase_all(std::deque<uint64_t>& queue, const std::vector<uint64_t>& paid) {
  const std::set<uint64_t> gone(paid.begin(), paid.end());
  std::erase_if(queue, [&gone](uint64_t id) { return gone.contains(id); });
}

// Nothing will come of repeating it.
bool is_settled(const CallOutcome& outcome) {
  if (outcome.end == CallEnd::kAnswered) return true;
  return outcome.end == CallEnd::kRefused && refusal_of(outcome.error.reason) == Refusal::kFinal;
}

Method<v1::BeginStoreRequest, v1::BeginStoreResponse> method_of(const v1::BeginStoreRequest&) {
  return &v1::Worker::StubInterface::BeginStore;
}
Method<v1::LoadRequest, v1::LoadResponse> method_of(const v1::LoadRequest&) {
  return &v1::Worker::StubInterface::Load;
}
Method<v1::FinishStoreRequest, v1::FinishStoreResponse> method_of(const v1::FinishStoreRequest&) {
  return &v1::Worker::StubInterface::FinishStore;
}

std::span<const uint64_t> replicas_of(const v1::FinishStoreRequest& request) {
  return {request.replicas().data(), static_cast<size_t>(request.replicas_size())};
}
std::span<const uint64_t> replicas_of(const v1::BeginStoreRequest&) { return {}; }
std::span<const uint64_t> replicas_of(const v1::LoadRequest&) { return {}; }

}  // namespace

void Core::run_background() {
  Lock lock(mutex_);
  while (!stopping_) {
    if (handshake_until_ && now() >= *handshake_until_) {
      handshake_until_.reset();
      if (join_stream_) join_stream_->cancel();
    }
    if (!owes_locked() || now() < pay_at_) {
      wait_for_work(lock);
      continue;
    }
    const bool paid = pay_debts(lock);
    pay_back_off_ = paid ? Duration{0} : std::clamp(pay_back_off_ * 2, kPayAgainMin, kPayAgainMax);
    pay_at_ = now() + jittered(pay_back_off_, chance_locked());
    changed_.notify_all();
  }
}

void Core::wait_for_work(Lock& lock) {
  std::optional<Time> wake_at = handshake_until_;
  if (owes_locked()) wake_at = wake_at ? std::min(*wake_at, pay_at_) : pay_at_;
  if (!wake_at)
    changed_.wait(lock);
  else
    changed_.wait_for(lock,
                      std::chrono::milliseconds(std::max<int64_t>((*wake_at - now()).millis, 1)));
}

bool Core::owes_locked() const {
  if (!attachment_) return false;
  const Session& session = *attachment_->session;
  return !session.releases.empty() || !session.aborts.empty() || !session.unsettled.empty();
}

bool Core::pay_debts(Lock& lock) {
  const Ticket ticket = background_ticket_locked();
  const bool released = pay_releases(lock, ticket);
  const bool aborted = pay_aborts(lock, ticket);
  return settle_operations(lock, ticket) && released && aborted;
}

bool Core::pay_releases(Lock& lock, const Ticket& ticket) {
  Session& session = *ticket.attachment->session;
  const std::vector<uint64_t> handles =
      front_of(session.releases, ticket.attachment->batch_items_max);
  if (handles.empty()) return true;
  v1::WorkerReleaseRequest request;
  *request.mutable_caller() = ticket.caller;
  request.mutable_handles()->Add(handles.begin(), handles.end());
  v1::WorkerReleaseResponse response;
  lock.unlock();
  const CallOutcome outcome =
      call_once(ticket, &v1::Worker::StubInterface::Release, request, &response, kSettleDeadline);
  lock.lock();
  if (!is_settled(outcome)) return false;
  erase_all(session.releases, handles);
  return true;
}

bool Core::pay_aborts(Lock& lock, const Ticket& ticket) {
  Session& session = *ticket.attachment->session;
  const std::vector<uint64_t> replicas =
      front_of(session.aborts, ticket.attachment->batch_items_max);
  if (replicas.empty()) return true;
  v1::AbortStoreRequest request;
  *request.mutable_caller() = ticket.caller;
  request.mutable_replicas()->Add(replicas.begin(), replicas.end());
  v1::AbortStoreResponse response;
  lock.unlock();
  const CallOutcome outcome = call_once(ticket, &v1::Worker::StubInterface::AbortStore, request,
                                        &response, kSettleDeadline);
  lock.lock();
  if (!is_settled(outcome)) return false;
  erase_all(session.aborts, replicas);
  return true;
}

bool Core::settle_operations(Lock& lock, const Ticket& ticket) {
  const std::deque<UnsettledOperation> operations = ticket.attachment->session->unsettled;
  for (const UnsettledOperation& operation : operations) {
    const bool settled = std::visit(
        [&](const auto& request) {
          return settle(lock, ticket, operation.number, request, method_of(request));
        },
        operation.request);
    if (!settled) return false;
  }
  return true;
}

template <class Request, class Response>
bool Core::settle(Lock& lock, const Ticket& ticket, OperationNumber number, Request request,
                  Method<Request, Response> method) {
  *request.mutable_caller() = ticket.caller;
  Response response;
  lock.unlock();
  const CallOutcome outcome = call_once(ticket, method, request, &response, kSettleDeadline);
  const bool is_refused = outcome.end == CallEnd::kRefused && is_settled(outcome);
  if (is_refused) {
    log::warning("operation_refused", {{"operation", number},
                                       {"reason", outcome.error.reason},
                                       {"message", outcome.error.message}});
  }
  lock.lock();
  if (!is_settled(outcome)) return false;
  Session& session = *ticket.attachment->session;
  if (is_refused) {
    owe_aborts_locked(session, replicas_of(request));
  } else if (!collect_locked(session, request, response)) {
    return false;
  }
  session.settle_abandoned(number);
  ++stats_.operations_settled;
  return true;
}

// What an answered operation granted to nobody is given back. False: it is not decided yet.
bool Core::collect_locked(Session& session, const v1::BeginStoreRequest&,
                          const v1::BeginStoreResponse& response) {
  owe_aborts_locked(session,
                    {response.replicas().data(), static_cast<size_t>(response.replicas_size())});
  return true;
}

bool Core::collect_locked(Session& session, const v1::LoadRequest&,
                          const v1::LoadResponse& response) {
  if (response.handle() != 0) owe_release_locked(session, response.handle());
  return true;
}

bool Core::collect_locked(Session& session, const v1::FinishStoreRequest& request,
                          const v1::FinishStoreResponse& response) {
  const std::string& codes = response.codes();
  if (codes.find(static_cast<char>(CommitCode::kUnavailable)) != std::string::npos) return false;
  const std::span<const uint64_t> replicas = replicas_of(request);
  for (size_t i = 0; i < replicas.size(); ++i)
    if (i >= codes.size() || codes[i] != static_cast<char>(CommitCode::kCommitted))
      owe_aborts_locked(session, replicas.subspan(i, 1));
  return true;
}

void Core::owe_aborts_locked(Session& session, std::span<const uint64_t> replicas) {
  for (const uint64_t replica : replicas)
    if (replica != 0) session.aborts.push_back(replica);
  if (!replicas.empty()) changed_.notify_all();
}

void Core::owe_release_locked(Session& session, uint64_t handle) {
  session.releases.push_back(handle);
  changed_.notify_all();
}

}  // namespace berth::client
