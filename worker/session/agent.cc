#include "worker/session/agent.h"

#include "common/check.h"
#include "worker/session/agent_state.h"

namespace berth::worker {

AgentState::AgentState(AgentOptions options_in, pool::Ledger& ledger_in)
    : options(std::move(options_in)),
      ledger(ledger_in),
      backoff(options.backoff_min, options.backoff_max, options.seed) {
  // In force until the server says its own.
  limits.set_batch_items_max(4096);
  limits.set_operations_max(1024);
  limits.set_leases_max(4096);
  limits.set_object_bytes_max(uint64_t{1} << 30);
  for (const AgentPool& pool : options.pools) {
    PoolSlot& slot = pools.emplace_back();
    slot.spec = pool.spec;
    slot.map_bytes = pool.map_bytes;
  }
}

void AgentState::note(Note::Level level, std::string event,
                      std::vector<std::pair<std::string, std::string>> fields) {
  actions.emplace_back(Note{level, std::move(event), std::move(fields)});
}

namespace {

// Every input starts with its time and ends with what it left to be said.
class Step {
 public:
  Step(AgentState& state, Time now) : state_(state) {
    BERTH_CHECK(now >= state.now, "time never goes back");
    state.now = now;
  }
  ~Step() { state_.flush(); }

 private:
  AgentState& state_;
};

}  // namespace

Agent::Agent(AgentOptions options, pool::Ledger& ledger)
    : state_(std::make_unique<AgentState>(std::move(options), ledger)) {}
Agent::~Agent() = default;

std::vector<Action> Agent::take_actions() { return std::exchange(state_->actions, {}); }

// ---- Time ----

void Agent::tick(Time now) {
  const Step step(*state_, now);
  state_->tick_attachment();
  state_->resend_due();
  state_->answer_overdue_finishes();
  state_->test_due_locks();
  state_->owe_late_releases();
  state_->sharing_changed = true;
}

void Agent::stop(Time now) {
  const Step step(*state_, now);
  state_->stopping = true;
  for (const auto& [id, join] : std::exchange(state_->pending_joins, {})) {
    state_->actions.emplace_back(EndJoin{id, {Reason::kUnavailable, "this worker is stopping"}});
  }
}

bool Agent::is_idle() const {
  for (const auto& [id, client] : state_->clients) {
    const pool::ClientSpans spans = state_->ledger.spans_of(id);
    if (spans.writers + spans.readers > 0 || !client.committing.empty() ||
        !client.aborting.empty() || !client.releasing.empty()) {
      return false;
    }
  }
  return true;
}

// ---- From berthd ----

void Agent::session_opened(ConnectionId connection, const Result<v1::OpenSessionResponse>& answer,
                           Time now) {
  const Step step(*state_, now);
  if (connection != state_->connection || state_->stage != Stage::kOpening) return;
  state_->session_opened(answer);
}

void Agent::reattach_received(ConnectionId connection, const v1::ReattachResponse& message,
                              Time now) {
  const Step step(*state_, now);
  if (connection != state_->connection || state_->stage != Stage::kReattaching) return;
  if (message.has_welcome()) state_->reattach_welcomed(message.welcome());
  if (message.has_verdicts()) state_->verdicts_received(message.verdicts());
  if (message.has_done()) state_->reattach_done(message.done());
}

void Agent::reattach_ended(ConnectionId connection, const Error& error, Time now) {
  const Step step(*state_, now);
  if (connection != state_->connection || state_->stage != Stage::kReattaching) return;
  state_->detach(error);
}

void Agent::link_received(ConnectionId connection, const v1::LinkResponse& message, Time now) {
  const Step step(*state_, now);
  if (connection != state_->connection) return;
  state_->heard_at = now;
  if (message.has_welcome()) return state_->link_welcomed(message.welcome());
  if (state_->stage == Stage::kLinking && message.has_error()) {
    return state_->pushed(message);
  }
  if (state_->stage == Stage::kAttached) state_->link_received(message);
}

void Agent::connection_failed(ConnectionId connection, const Error& error, Time now) {
  const Step step(*state_, now);
  if (connection != state_->connection || state_->stage == Stage::kWaiting) return;
  state_->detach(error);
}

// ---- Clients ----

void Agent::client_joined(Join join, Time now) {
  const Step step(*state_, now);
  state_->client_joined(std::move(join));
}

void Agent::client_poisoned(JoinId join, OperationNumber operation, Time now) {
  const Step step(*state_, now);
  if (Client* client = state_->client_of(join)) state_->poison(*client, operation);
}

void Agent::client_stream_ended(JoinId join, Time now) {
  const Step step(*state_, now);
  state_->stream_ended(join);
}

void Agent::client_suspected(SessionId id, Time now) {
  const Step step(*state_, now);
  const Client* client = state_->find_client(id);
  if (!client) return;
  for (const std::string& name : client->life_names) state_->watch(name);
}

void Agent::life_tested(std::string_view life_name, Life life, Time now) {
  const Step step(*state_, now);
  state_->life_tested(std::string(life_name), life);
}

// ---- Other workers of this host ----

void Agent::peer_connected(PeerId peer, const v1::WorkerHello& hello, Time now) {
  const Step step(*state_, now);
  state_->peer_connected(peer, hello);
}

void Agent::peer_ended(PeerId peer, Time now) {
  const Step step(*state_, now);
  state_->peer_ended(peer);
}

void Agent::export_locked(PeerId peer, size_t pool_slot, const std::string& life_name, Time now) {
  const Step step(*state_, now);
  state_->export_locked(peer, pool_slot, life_name);
}

void Agent::import_offered(ImportId import, const v1::SharedPool& shared, Time now) {
  const Step step(*state_, now);
  state_->import_offered(import, shared);
}

void Agent::import_ended(ImportId import, Time now) {
  const Step step(*state_, now);
  state_->import_ended(import);
}

// ---- Calls of engines ----

#define BERTH_ADMIT(who)                                                        \
  const Step step(*state_, now);                                                \
  const Result<Client*> admitted = state_->admit(request.caller(), who);        \
  if (!admitted) return state_->answer(call, tl::unexpected(admitted.error())); \
  [[maybe_unused]] Client& client = **admitted

void Agent::open_namespace(CallId call, const v1::WorkerOpenNamespaceRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  state_->open_namespace(call, request);
}

void Agent::probe(CallId call, const v1::WorkerProbeRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  state_->probe(call, client, request);
}

void Agent::begin_store(CallId call, const v1::BeginStoreRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  state_->begin_store(call, client, request);
}

void Agent::finish_store(CallId call, const v1::FinishStoreRequest& request, Time answer_by,
                         Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  state_->finish_store(call, client, request, answer_by);
}

void Agent::abort_store(CallId call, const v1::AbortStoreRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kAll);
  state_->abort_store(client, request.replicas());
  state_->answer(call, Reply(v1::AbortStoreResponse()));
}

void Agent::load(CallId call, const v1::LoadRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  state_->load(call, client, request);
}

void Agent::wait(CallId call, const v1::WaitRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  const auto held = state_->ledger.leases().find(LeaseId(request.handle()));
  if (held == state_->ledger.leases().end() || held->second.client != client.session) {
    return state_->answer(
        call, refuse(Reason::kUnknownLease,
                     "handle = " + std::to_string(request.handle()) + ": not held by this client"));
  }
  v1::WaitResponse response;  // what lies in L1 is complete from the start
  response.set_state(v1::LOAD_STATE_COMPLETE);
  state_->answer(call, Reply(std::move(response)));
}

void Agent::renew(CallId call, const v1::WorkerRenewRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kLive);
  state_->renew(call, client, request);
}

void Agent::release(CallId call, const v1::WorkerReleaseRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kAll);
  state_->release(call, client, request);
}

void Agent::leave(CallId call, const v1::LeaveRequest& request, Time now) {
  BERTH_ADMIT(AgentState::Admit::kAll);
  state_->leave(call, client);
}

#undef BERTH_ADMIT

std::vector<WrittenSpan> Agent::spans_of(const v1::FinishStoreRequest& request) const {
  std::vector<WrittenSpan> spans;
  for (const uint64_t id : request.replicas()) {
    const pool::LedgerEntry* entry = state_->ledger.find(ReplicaId(id));
    if (!entry || entry->client.value() != request.caller().client_session()) continue;
    const PoolId pool = state_->ledger.pool_of(*entry);
    for (size_t slot = 0; slot < state_->pools.size(); ++slot) {
      if (state_->pools[slot].id == pool) {
        spans.push_back({slot, entry->offset, entry->size_bytes});
      }
    }
  }
  return spans;
}

// ---- Views ----

bool Agent::is_attached() const { return state_->stage == Stage::kAttached; }

std::string_view Agent::stage_name() const {
  switch (state_->stage) {
    case Stage::kWaiting:
      return "waiting";
    case Stage::kOpening:
      return "opening";
    case Stage::kReattaching:
      return "reattaching";
    case Stage::kLinking:
      return "linking";
    case Stage::kAttached:
      return "attached";
    case Stage::kDraining:
      return "draining";
    case Stage::kFailed:
      return "failed";
  }
  return "unknown";
}

size_t Agent::client_count() const { return state_->clients.size(); }

std::vector<SessionId> Agent::clients() const {
  std::vector<SessionId> ids;
  for (const auto& [id, client] : state_->clients) ids.push_back(id);
  return ids;
}

std::string Agent::check_invariants() const { return state_->check_invariants(); }

}  // namespace berth::worker
