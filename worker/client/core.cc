#include "worker/client/core.h"

#include <algorithm>
#include <utility>

#include "common/names.h"
#include "common/random.h"
#include "worker/client/translate.h"

namespace berth::client {
namespace {

// Operations whose outcome is unknown; while there are more, nothing new is started that could add
// to them.
constexpr size_t kUnsettledMax = 64;
// Replicas whose abort the worker has not confirmed; as above.
constexpr size_t kAbortsOwedMax = 1 << 16;
constexpr int64_t kPauseMaxMillis = 50;

bool is_final_for_join(Reason reason) {
  switch (reason) {
    case Reason::kInvalidArgument:
    case Reason::kInvalidConfig:
    case Reason::kUnsupportedVersion:
    case Reason::kPermissionDenied:
      return true;
    default:
      return false;
  }
}

Result<> check_options(const ClientOptions& options) {
  if (options.socket.empty())
    return refuse(Reason::kInvalidArgument,
                  "socket is empty: accepted is the path of a worker's socket");
  return validate_name("engine id", options.engine_id);
}

}  // namespace

Core::Core(ClientOptions options) : options_(std::move(options)), breaker_(options_.breaker) {
  random_.seed(static_cast<std::minstd_rand::result_type>(random_seed()));
}

Core::~Core() { stop(); }

Result<> Core::start() {
  if (const Result<> checked = check_options(options_); !checked) return checked;
  join_thread_ = std::thread([this] { run_join(); });
  background_thread_ = std::thread([this] { run_background(); });
  std::optional<Error> refused;
  {
    Lock lock(mutex_);
    const auto settled = [this] {
      return attachment_ || (join_refused_ && is_final_for_join(join_refused_->reason));
    };
    changed_.wait_for(lock, std::chrono::milliseconds(options_.join_deadline.millis), settled);
    if (attachment_) return {};
    refused = join_refused_;
  }
  stop();
  if (refused && is_final_for_join(refused->reason)) return tl::unexpected(*refused);
  return refuse(Reason::kUnavailable, "no worker answered at " + options_.socket + " within " +
                                          std::to_string(options_.join_deadline.millis) + "ms" +
                                          (refused ? ": " + refused->message : ""));
}

void Core::stop() {
  if (!join_thread_.joinable()) return;
  (void)leave();  // refused while something is out: then the life lock speaks for this process
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (join_stream_) join_stream_->cancel();
  }
  changed_.notify_all();
  join_thread_.join();
  background_thread_.join();
}

// ---- Calls ------------------------------------------------------------------------------------

v1::ClientCaller Core::caller_locked(const Attachment& attachment) const {
  v1::ClientCaller caller;
  caller.set_client_session(attachment.session->id().value());
  caller.set_token(attachment.token);
  caller.set_worker_incarnation(attachment.worker_incarnation);
  caller.set_operation_low_water(attachment.session->low_water());
  return caller;
}

bool Core::may_start_locked(Kind kind) const {
  if (!attachment_) return false;
  const Session& session = *attachment_->session;
  const bool is_in_debt =
      session.unsettled.size() >= kUnsettledMax || session.aborts.size() >= kAbortsOwedMax;
  switch (kind) {
    case Kind::kPlain:
    case Kind::kFinish:  // what was begun may end
      return true;
    case Kind::kStore:
      return !is_in_debt && session.stores_out() < options_.stores_max;
    case Kind::kLoad:
      return !is_in_debt && session.loads_out() < options_.loads_max;
  }
  return false;
}

std::optional<Core::Ticket> Core::admit(Kind kind) {
  const std::lock_guard lock(mutex_);
  Ticket ticket;
  ticket.attachment = attachment_;
  const bool may_start = may_start_locked(kind);
  if (may_start) ticket.admission = breaker_.admit(now());
  if (!may_start || ticket.admission == Breaker::Admission::kRefuse) {
    ++stats_.calls_short;
    return std::nullopt;
  }
  if (kind != Kind::kPlain) {
    const std::optional<OperationNumber> number = attachment_->session->start_operation();
    if (!number) {
      breaker_.withdraw(ticket.admission);
      ++stats_.calls_short;
      return std::nullopt;
    }
    ticket.operation = *number;
  }
  ticket.maps = attachment_->maps;
  ticket.caller = caller_locked(*attachment_);
  ++stats_.calls;
  return ticket;
}

Core::Ticket Core::background_ticket_locked() const {
  Ticket ticket;
  ticket.attachment = attachment_;
  ticket.caller = caller_locked(*attachment_);
  return ticket;
}

void Core::report(const Ticket& ticket, const CallOutcome& outcome) {
  const std::lock_guard lock(mutex_);
  if (outcome.end == CallEnd::kSilent) {
    ++(outcome.error.reason == Reason::kDeadlineExceeded ? stats_.calls_timed_out
                                                         : stats_.calls_failed);
    // A join that is over says nothing about the next one.
    if (ticket.attachment == attachment_) breaker_.failed(ticket.admission, now(), chance_locked());
    return;
  }
  if (ticket.attachment == attachment_) breaker_.succeeded();
  if (outcome.end != CallEnd::kRefused) return;
  const Refusal refusal = refusal_of(outcome.error.reason);
  if (refusal == Refusal::kRejoin) detach_locked(ticket.attachment, SessionEnd::kResumable);
  if (refusal == Refusal::kSessionOver) detach_locked(ticket.attachment, SessionEnd::kOver);
}

void Core::detach_locked(const std::shared_ptr<Attachment>& attachment, SessionEnd end) {
  attachment->detached->store(true, std::memory_order_release);
  if (end == SessionEnd::kOver && session_ == attachment->session) end_session_locked();
  if (attachment_ != attachment) return;
  attachment_.reset();
  stats_.server_reachable = false;
  if (join_stream_) join_stream_->cancel();
  changed_.notify_all();
}

void Core::end_session_locked() {
  session_.reset();
  life_.reset();
}

uint32_t Core::batch_items_max() {
  const std::lock_guard lock(mutex_);
  return attachment_ ? attachment_->batch_items_max : 0;
}

bool Core::pause(int attempt, Time until) {
  Lock lock(mutex_);
  const Duration bound{std::min(int64_t{2} << std::min(attempt, 10), kPauseMaxMillis)};
  const Duration wait = jittered(bound, chance_locked());
  if (now() + wait >= until) return false;
  changed_.wait_for(lock, std::chrono::milliseconds(wait.millis), [this] { return stopping_; });
  return !stopping_;
}

void Core::count_unavailable(uint64_t misses, uint64_t skips) {
  const std::lock_guard lock(mutex_);
  stats_.misses_unavailable += misses;
  stats_.skips_unavailable += skips;
}

// ---- Small calls ------------------------------------------------------------------------------

Result<Namespace> Core::open_namespace(const NamespaceSpec& spec) {
  const std::optional<Ticket> ticket = admit(Kind::kPlain);
  if (!ticket) return refuse(Reason::kUnavailable, "no worker is joined, or it does not answer");
  v1::WorkerOpenNamespaceRequest request;
  *request.mutable_caller() = ticket->caller;
  *request.mutable_spec() = to_proto(spec);
  v1::OpenNamespaceResponse response;
  const CallOutcome outcome = call_patiently(*ticket, &v1::Worker::StubInterface::OpenNamespace,
                                             request, &response, options_.control_deadline);
  if (outcome.end != CallEnd::kAnswered) return tl::unexpected(outcome.error);
  const Result<Namespace> opened = namespace_from_proto(response);
  if (opened) remember(request.spec());
  return opened;
}

void Core::remember(const v1::NamespaceSpec& spec) {
  const std::lock_guard lock(mutex_);
  namespaces_[spec.name()] = spec;
}

Result<Probe> Core::probe(const ChainRequest& request) {
  Result<v1::WorkerProbeRequest> message = to_probe_request(request, batch_items_max());
  if (!message) return tl::unexpected(message.error());
  const Probe outage{.miss_reason = MissReason::kUnavailable};
  const std::optional<Ticket> ticket = admit(Kind::kPlain);
  if (!ticket) {
    count_unavailable(1, 0);
    return outage;
  }
  *message->mutable_caller() = ticket->caller;
  v1::ProbeResponse response;
  const CallOutcome outcome = call_once(*ticket, &v1::Worker::StubInterface::Probe, *message,
                                        &response, options_.probe_deadline);
  if (outcome.end == CallEnd::kAnswered)
    return probe_from_proto(response, request.digests.size() / request.name_space.digest_bytes);
  if (outcome.end == CallEnd::kRefused && refusal_of(outcome.error.reason) == Refusal::kFinal)
    return tl::unexpected(outcome.error);
  count_unavailable(1, 0);
  return outage;
}

Result<> Core::leave() {
  Lock lock(mutex_);
  if (left_) return {};
  if (session_ && session_->has_holders())
    return refuse(Reason::kStillMapped,
                  "handles or stores are still out; release them, then leave");
  const auto has_paid = [this] { return !attachment_ || !owes_locked(); };
  changed_.wait_for(lock, std::chrono::milliseconds(options_.control_deadline.millis), has_paid);
  const auto is_used = [](const Attachment& attachment) {
    return attachment.maps.use_count() > 1 ||
           std::any_of(attachment.earlier_maps.begin(), attachment.earlier_maps.end(),
                       [](const auto& earlier) { return !earlier.expired(); });
  };
  if (attachment_ && is_used(*attachment_))
    return refuse(Reason::kStillMapped,
                  "calls, handles or stores are still out; end them, then leave");
  left_ = true;
  life_.reset();
  changed_.notify_all();
  if (!attachment_) return {};
  const Ticket ticket = background_ticket_locked();
  std::shared_ptr<const PoolMaps> maps = std::move(ticket.attachment->maps);
  ticket.attachment->life.reset();
  attachment_.reset();
  lock.unlock();

  maps.reset();  // unmapped, and the life lock closed, before the worker is told
  v1::LeaveRequest request;
  *request.mutable_caller() = ticket.caller;
  v1::LeaveResponse response;
  (void)call_once(ticket, &v1::Worker::StubInterface::Leave, request, &response,
                  options_.control_deadline);
  return {};
}

bool Core::wait_joined(Duration within) {
  Lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(within.millis),
                           [this] { return attachment_ != nullptr; });
}

ClientStats Core::stats() {
  const std::lock_guard lock(mutex_);
  ClientStats stats = stats_;
  stats.joined = attachment_ != nullptr;
  stats.breaker_open = breaker_.is_open();
  stats.breaker_opened = breaker_.opened_count();
  stats.operations_unsettled = session_ ? session_->unsettled.size() : 0;
  return stats;
}

}  // namespace berth::client
