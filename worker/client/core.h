// What is behind Client, and kept alive by the handles and stores it gave out. Two threads: the
// join thread holds the Join stream and joins again when it ends; the background thread gives back
// what is owed (releases, aborts, operations whose outcome is unknown). Callers make their own
// calls.
//
// One mutex guards everything that changes; it is never held over a call.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "worker/client/breaker.h"
#include "worker/client/call.h"
#include "worker/client/client.h"
#include "worker/client/join_stream.h"
#include "worker/client/records.h"

namespace berth::client {

class Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(ClientOptions options);
  ~Core();

  // Starts the threads and waits for the first join. Errors: as Client::join; the threads are
  // stopped then.
  Result<> start();
  // Leaves if nothing is out, and ends the threads. Idempotent.
  void stop();

  Result<Namespace> open_namespace(const NamespaceSpec& spec);
  Result<Probe> probe(const ChainRequest& request);
  Result<PendingStore> begin_store(const StoreRequest& request);
  Result<std::vector<CommitCode>> finish_store(PendingStore& store,
                                               std::span<const uint32_t> items);
  void abort_store(PendingStore& store, std::span<const uint32_t> items);
  Result<LoadHandle> load(const ChainRequest& request, Duration ttl);
  Result<LoadState> wait(LoadRecord& record, Duration within);
  void release(std::span<LoadHandle> handles);
  Result<std::vector<bool>> renew(std::span<const LoadHandle* const> handles, Duration ttl);
  Result<> leave();
  bool wait_joined(Duration within);
  ClientStats stats();

  // The user's object is gone: what it still holds is given back in the background.
  void forget(StoreRecord& record);
  void forget(LoadRecord& record);

  // Indexes of items that are open.
  static std::vector<uint32_t> open_items(const PendingStore& store);

 private:
  // Leave to make one call. Every ticket is reported back.
  struct Ticket {
    std::shared_ptr<Attachment> attachment;
    std::shared_ptr<const PoolMaps> maps;
    Breaker::Admission admission = Breaker::Admission::kPass;
    v1::ClientCaller caller;
    OperationNumber operation = 0;  // zero: the call takes none
  };
  // What is about to be asked: all but kPlain take an operation number, and each has its bound.
  enum class Kind : uint8_t { kPlain, kStore, kFinish, kLoad };

  // ---- core.cc: calls ----
  Time now() const { return Time{clock_.monotonic_millis()}; }
  double chance_locked() { return std::generate_canonical<double, 32>(random_); }
  // None: answer as in an outage, without a call.
  std::optional<Ticket> admit(Kind kind);
  bool may_start_locked(Kind kind) const;
  // For debts: not held back by the breaker. Needs an attachment.
  Ticket background_ticket_locked() const;
  v1::ClientCaller caller_locked(const Attachment& attachment) const;
  // How a call ended: feeds the breaker, and ends the join when the worker says so.
  void report(const Ticket& ticket, const CallOutcome& outcome);
  // Ends this join if it is the present one. With kOver the session is not resumed.
  enum class SessionEnd : uint8_t { kResumable, kOver };
  void detach_locked(const std::shared_ptr<Attachment>& attachment, SessionEnd end);
  uint32_t batch_items_max();
  // Waits a little before a repeated call; false when there is no time left or the client stops.
  bool pause(int attempt, Time until);
  template <class Request, class Response>
  CallOutcome call_once(const Ticket& ticket, Method<Request, Response> method,
                        const Request& request, Response* response, Duration deadline);
  // Repeats it while the worker says that it is busy.
  template <class Request, class Response>
  CallOutcome call_patiently(const Ticket& ticket, Method<Request, Response> method,
                             const Request& request, Response* response, Duration deadline);
  // A begin or load without a result: settles its number or hands it to the background. The Error
  // is the caller's; none means that it is told of an outage.
  template <class Request>
  std::optional<Error> conclude_unanswered(const Ticket& ticket, const CallOutcome& outcome,
                                           const Request& request);
  // To be opened again at the next join: a worker knows the namespaces that were opened through it.
  void remember(const v1::NamespaceSpec& spec);
  void count_unavailable(uint64_t misses, uint64_t skips);

  // ---- core_store.cc, core_load.cc ----
  PendingStore skipped_store(size_t item_count);
  Result<PendingStore> hand_out_store(const Ticket& ticket, const StoreRequest& wanted,
                                      const v1::BeginStoreRequest& request,
                                      const v1::BeginStoreResponse& response);
  std::optional<Ticket> admit_finish(const StoreRecord& record, Time until);
  CallOutcome call_finish(Ticket& ticket, const v1::FinishStoreRequest& request,
                          v1::FinishStoreResponse* response, Time until);
  Result<std::vector<CommitCode>> conclude_finish(const Ticket& ticket, StoreRecord& record,
                                                  std::span<const uint32_t> items,
                                                  const CallOutcome& outcome,
                                                  const v1::FinishStoreRequest& request,
                                                  const v1::FinishStoreResponse& response);
  std::vector<uint64_t> take_replicas_locked(StoreRecord& record, std::span<const uint32_t> items);
  void give_up_items_locked(StoreRecord& record, std::span<const uint32_t> items);
  LoadHandle missed_load();
  Result<LoadHandle> hand_out_load(const Ticket& ticket, const v1::LoadResponse& response,
                                   const ChainRequest& request);

  // ---- core_join.cc ----
  void run_join();
  enum class JoinEnd : uint8_t { kJoined, kRefused, kSessionOver };
  JoinEnd join_once();
  Result<> reopen_namespaces(const std::shared_ptr<Attachment>& attachment);
  void publish(const std::shared_ptr<Attachment>& attachment);
  void serve(JoinStream& stream, const std::shared_ptr<Attachment>& attachment);
  bool handle_message(JoinStream& stream, const std::shared_ptr<Attachment>& attachment,
                      const v1::JoinResponse& message);
  void add_pool(JoinStream& stream, const std::shared_ptr<Attachment>& attachment,
                const v1::JoinPoolAdded& added);
  void drop_pool(const std::shared_ptr<Attachment>& attachment, PoolId pool);
  void replace_maps_locked(Attachment& attachment, PoolMaps maps);
  JoinEnd note_join_refused(const std::shared_ptr<Session>& asked_for, const Error& error);
  void end_session_locked();

  // ---- core_background.cc ----
  using Lock = std::unique_lock<std::mutex>;
  void run_background();
  void wait_for_work(Lock& lock);
  bool owes_locked() const;
  // False: something was not confirmed; try again later. All of these let go of the lock while they
  // call.
  bool pay_debts(Lock& lock);
  bool pay_releases(Lock& lock, const Ticket& ticket);
  bool pay_aborts(Lock& lock, const Ticket& ticket);
  bool settle_operations(Lock& lock, const Ticket& ticket);
  template <class Request, class Response>
  bool settle(Lock& lock, const Ticket& ticket, OperationNumber number, Request request,
              Method<Request, Response> method);
  bool collect_locked(Session& session, const v1::BeginStoreRequest& request,
                      const v1::BeginStoreResponse& response);
  bool collect_locked(Session& session, const v1::LoadRequest& request,
                      const v1::LoadResponse& response);
  bool collect_locked(Session& session, const v1::FinishStoreRequest& request,
                      const v1::FinishStoreResponse& response);
  void owe_aborts_locked(Session& session, std::span<const uint64_t> replicas);
  void owe_release_locked(Session& session, uint64_t handle);

  const ClientOptions options_;
  const SteadyClock clock_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // All below: guarded by mutex_.
  Breaker breaker_;
  std::minstd_rand random_;
  ClientStats stats_;
  std::shared_ptr<Attachment> attachment_;  // null while not joined
  // Of the latest join, kept until the next one: between two joins this process lives on, and
  // whoever finds the lock free would take it for dead and end its session.
  LifeDescriptor life_;
  std::shared_ptr<Session> session_;  // to be resumed; null when there is none
  std::map<std::string, v1::NamespaceSpec>
      namespaces_;                           // opened, by name; as many as the user opens
  std::shared_ptr<JoinStream> join_stream_;  // of the join under way or in force
  std::optional<Time> handshake_until_;
  std::optional<Error> join_refused_;  // the worker's latest refusal
  Time pay_at_;                        // not before
  Duration pay_back_off_;
  bool stopping_ = false;
  bool left_ = false;

  std::thread join_thread_;
  std::thread background_thread_;
};

template <class Request, class Response>
CallOutcome Core::call_once(const Ticket& ticket, Method<Request, Response> method,
                            const Request& request, Response* response, Duration deadline) {
  const CallOutcome outcome = call(*ticket.attachment, method, request, response, deadline);
  report(ticket, outcome);
  return outcome;
}

template <class Request, class Response>
CallOutcome Core::call_patiently(const Ticket& ticket, Method<Request, Response> method,
                                 const Request& request, Response* response, Duration deadline) {
  const Time until = now() + deadline;
  for (int attempt = 0;; ++attempt) {
    const Duration left = std::max(until - now(), milliseconds(1));
    const CallOutcome outcome = call(*ticket.attachment, method, request, response, left);
    const bool busy =
        outcome.end == CallEnd::kRefused && refusal_of(outcome.error.reason) == Refusal::kBusy;
    if (busy && pause(attempt, until)) continue;
    report(ticket, outcome);
    return outcome;
  }
}

template <class Request>
std::optional<Error> Core::conclude_unanswered(const Ticket& ticket, const CallOutcome& outcome,
                                               const Request& request) {
  const std::lock_guard lock(mutex_);
  Session& session = *ticket.attachment->session;
  if (is_outcome_unknown(outcome)) {
    session.abandon_operation({ticket.operation, request});
    ++stats_.operations_abandoned;
    changed_.notify_all();
    return std::nullopt;
  }
  session.answer_operation(ticket.operation);
  if (refusal_of(outcome.error.reason) == Refusal::kFinal) return outcome.error;
  return std::nullopt;
}

}  // namespace berth::client
