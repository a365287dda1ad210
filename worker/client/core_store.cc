// The store half of Core: begin, finish, abort.
#include <utility>

#include "worker/client/core.h"
#include "worker/client/translate.h"

namespace berth::client {
namespace {

void fill_holder(Holder& holder, std::shared_ptr<Core> core, const Attachment& attachment,
                 std::shared_ptr<const PoolMaps> maps) {
  holder.core = std::move(core);
  holder.session = attachment.session;
  holder.maps = std::move(maps);
  holder.detached = attachment.detached;
}

void withdraw_grants(StoreRecord& record, StoreCode code) {
  for (size_t i = 0; i < record.items.size(); ++i) {
    if (record.items[i].code == StoreCode::kGranted) record.items[i] = {code, {}};
    record.replicas[i] = 0;
  }
}

bool has_open_items(const StoreRecord& record) {
  return std::any_of(record.replicas.begin(), record.replicas.end(),
                     [](uint64_t replica) { return replica != 0; });
}

bool has_unavailable(const v1::FinishStoreResponse& response) {
  return response.codes().find(static_cast<char>(CommitCode::kUnavailable)) != std::string::npos;
}

}  // namespace

// ---- Begin ------------------------------------------------------------------------------------

Result<PendingStore> Core::begin_store(const StoreRequest& request) {
  Result<v1::BeginStoreRequest> message = to_begin_request(request, batch_items_max());
  if (!message) return tl::unexpected(message.error());
  const size_t item_count = request.digests.size() / request.name_space.digest_bytes;
  const std::optional<Ticket> ticket = admit(Kind::kStore);
  if (!ticket) return skipped_store(item_count);

  message->set_operation(ticket->operation);
  *message->mutable_caller() = ticket->caller;
  v1::BeginStoreResponse response;
  const CallOutcome outcome = call_patiently(*ticket, &v1::Worker::StubInterface::BeginStore,
                                             *message, &response, options_.store_deadline);
  if (outcome.end == CallEnd::kAnswered)
    return hand_out_store(*ticket, request, *message, response);
  if (std::optional<Error> error = conclude_unanswered(*ticket, outcome, *message))
    return tl::unexpected(std::move(*error));
  return skipped_store(item_count);
}

PendingStore Core::skipped_store(size_t item_count) {
  count_unavailable(0, item_count);
  auto record = std::make_shared<StoreRecord>();
  record->items.assign(item_count, {StoreCode::kSkippedUnavailable, {}});
  record->replicas.assign(item_count, 0);
  return PendingStore(std::move(record));
}

Result<PendingStore> Core::hand_out_store(const Ticket& ticket, const StoreRequest& wanted,
                                          const v1::BeginStoreRequest& request,
                                          const v1::BeginStoreResponse& response) {
  const size_t item_count = wanted.digests.size() / wanted.name_space.digest_bytes;
  auto record = std::make_shared<StoreRecord>();
  fill_holder(*record, shared_from_this(), *ticket.attachment, ticket.maps);
  record->operation = ticket.operation;
  record->positions.assign(wanted.positions.begin(), wanted.positions.end());
  record->ends_chain = wanted.ends_chain;
  std::vector<uint64_t> refused;
  const Result<> filled =
      fill_store(response, sizes_by_item(request, item_count), *record, refused);

  const std::lock_guard lock(mutex_);
  Session& session = *record->session;
  const Answer answer = session.answer_operation(ticket.operation);
  if (!filled) {
    const std::vector<uint64_t> all(response.replicas().begin(), response.replicas().end());
    owe_aborts_locked(session, all);
    return tl::unexpected(filled.error());
  }
  stats_.spans_refused += refused.size();
  owe_aborts_locked(session, refused);
  if (answer == Answer::kPoisoned || record->detached->load()) {
    owe_aborts_locked(session, record->replicas);
    withdraw_grants(*record, answer == Answer::kPoisoned ? StoreCode::kSkippedCancelled
                                                         : StoreCode::kSkippedUnavailable);
  }
  if (has_open_items(*record))
    session.hold_store(ticket.operation, record->stopped);
  else
    record->maps.reset();
  return PendingStore(std::move(record));
}

// ---- Finish -----------------------------------------------------------------------------------

std::vector<uint32_t> Core::open_items(const PendingStore& store) {
  std::vector<uint32_t> items;
  if (!store.record_) return items;
  for (size_t i = 0; i < store.record_->replicas.size(); ++i)
    if (store.record_->replicas[i] != 0) items.push_back(static_cast<uint32_t>(i));
  return items;
}

Result<std::vector<CommitCode>> Core::finish_store(PendingStore& store,
                                                   std::span<const uint32_t> items) {
  if (items.empty()) return std::vector<CommitCode>();
  StoreRecord* record = store.record_.get();
  v1::FinishStoreRequest request;
  for (const uint32_t item : items) {
    if (!record || item >= record->replicas.size() || record->replicas[item] == 0)
      return refuse(Reason::kInvalidArgument, "item " + std::to_string(item) +
                                                  " of the store is not open: accepted are granted "
                                                  "items, each once");
    request.add_replicas(record->replicas[item]);
    if (!record->positions.empty()) request.add_positions(record->positions[item]);
  }
  if (record) request.set_ends_chain(record->ends_chain);
  if (record->stopped->load()) {
    abort_store(store, items);
    return std::vector<CommitCode>(items.size(), CommitCode::kClosed);
  }
  const Time until = now() + options_.finish_deadline;
  std::optional<Ticket> ticket = admit_finish(*record, until);
  if (!ticket) {  // never sent, so nothing landed
    abort_store(store, items);
    if (record->detached->load()) return refuse(Reason::kRejoin, "the worker went away");
    return std::vector<CommitCode>(items.size(), CommitCode::kClosed);
  }
  request.set_operation(ticket->operation);
  *request.mutable_caller() = ticket->caller;
  v1::FinishStoreResponse response;
  const CallOutcome outcome = call_finish(*ticket, request, &response, until);
  return conclude_finish(*ticket, *record, items, outcome, request, response);
}

std::optional<Core::Ticket> Core::admit_finish(const StoreRecord& record, Time until) {
  for (int attempt = 0; !record.detached->load(); ++attempt) {
    std::optional<Ticket> ticket = admit(Kind::kFinish);
    if (ticket && ticket->attachment->detached == record.detached) return ticket;
    if (ticket) {  // joined again in between: the number was never used for this
      const std::lock_guard lock(mutex_);
      ticket->attachment->session->answer_operation(ticket->operation);
      return std::nullopt;
    }
    if (!pause(attempt, until)) return std::nullopt;
  }
  return std::nullopt;
}

CallOutcome Core::call_finish(Ticket& ticket, const v1::FinishStoreRequest& request,
                              v1::FinishStoreResponse* response, Time until) {
  for (int attempt = 0;; ++attempt) {
    const CallOutcome outcome =
        call_patiently(ticket, &v1::Worker::StubInterface::FinishStore, request, response,
                       std::max(until - now(), milliseconds(1)));
    ticket.admission = Breaker::Admission::kPass;  // a trial is made once
    const bool is_open = is_outcome_unknown(outcome) ||
                         (outcome.end == CallEnd::kAnswered && has_unavailable(*response));
    if (!is_open || ticket.attachment->detached->load() || !pause(attempt, until)) return outcome;
  }
}

Result<std::vector<CommitCode>> Core::conclude_finish(const Ticket& ticket, StoreRecord& record,
                                                      std::span<const uint32_t> items,
                                                      const CallOutcome& outcome,
                                                      const v1::FinishStoreRequest& request,
                                                      const v1::FinishStoreResponse& response) {
  const std::lock_guard lock(mutex_);
  Session& session = *record.session;
  const std::vector<uint64_t> replicas = take_replicas_locked(record, items);
  const bool answered = outcome.end == CallEnd::kAnswered;
  if (is_outcome_unknown(outcome) || (answered && has_unavailable(response))) {
    session.abandon_operation({ticket.operation, request});
    ++stats_.operations_abandoned;
    changed_.notify_all();
    if (!answered && record.detached->load())
      return refuse(Reason::kRejoin, "the worker went away");
    if (!answered) return std::vector<CommitCode>(items.size(), CommitCode::kUnavailable);
  } else {
    session.answer_operation(ticket.operation);
  }
  if (!answered) {
    owe_aborts_locked(session, replicas);
    return tl::unexpected(outcome.error);
  }
  if (response.codes().size() != items.size()) {
    owe_aborts_locked(session, replicas);
    return refuse(Reason::kInternal, "the worker's answer does not fit together: finish");
  }
  std::vector<CommitCode> codes;
  for (size_t i = 0; i < items.size(); ++i) {
    codes.push_back(static_cast<CommitCode>(response.codes()[i]));
    if (codes.back() == CommitCode::kClosed || codes.back() == CommitCode::kUnknown)
      owe_aborts_locked(session, std::span(&replicas[i], 1));
  }
  return codes;
}

// ---- Abort ------------------------------------------------------------------------------------

std::vector<uint64_t> Core::take_replicas_locked(StoreRecord& record,
                                                 std::span<const uint32_t> items) {
  std::vector<uint64_t> replicas;
  for (const uint32_t item : items)
    if (item < record.replicas.size()) replicas.push_back(std::exchange(record.replicas[item], 0));
  if (!has_open_items(record) && record.session) record.session->drop_store(record.operation);
  return replicas;
}

void Core::give_up_items_locked(StoreRecord& record, std::span<const uint32_t> items) {
  const std::vector<uint64_t> replicas = take_replicas_locked(record, items);
  owe_aborts_locked(*record.session, replicas);
}

void Core::abort_store(PendingStore& store, std::span<const uint32_t> items) {
  if (!store.record_ || !store.record_->core) return;
  const std::lock_guard lock(mutex_);
  give_up_items_locked(*store.record_, items);
}

void Core::forget(StoreRecord& record) {
  std::vector<uint32_t> all(record.replicas.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
  const std::lock_guard lock(mutex_);
  give_up_items_locked(record, all);
}

}  // namespace berth::client
