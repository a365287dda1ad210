// Being attached, losing it, and the re-attach that comes before every Link.
#include "common/check.h"
#include "worker/session/agent_state.h"
#include "worker/session/wire.h"

namespace berth::worker {
namespace {

// A restart does not help against these.
bool is_fatal(Reason reason) {
  return reason == Reason::kNameInUse || reason == Reason::kUnsupportedVersion ||
         reason == Reason::kInvalidArgument || reason == Reason::kPermissionDenied;
}

constexpr int kQuietFailures = 30;

// A new session needs a token of its own; the same one would bring the old session back.
std::string numbered_token(std::string token, uint64_t number) {
  for (size_t i = 0; i < 8 && i < token.size(); ++i) {
    token[i] = static_cast<char>(token[i] ^ static_cast<char>(number >> (8 * i)));
  }
  return token;
}

v1::LedgerState wire_state(pool::LedgerState state) { return static_cast<v1::LedgerState>(state); }

}  // namespace

void AgentState::enter(Stage next, Duration within) {
  stage = next;
  stage_deadline = now + within;
}

void AgentState::begin_attempt() {
  connection = ConnectionId(++connections_made);
  if (session.valid()) return open_reattach();
  BERTH_CHECK(ledger.entry_count() == 0 && clients.empty(),
              "a new session is opened only when nothing of the old one is held");
  enter(Stage::kOpening, options.attach_within);
  CallOpenSession call{connection, {}};
  v1::OpenSessionRequest& request = call.request;
  request.mutable_versions()->set_newest(kProtocolNewest);
  request.mutable_versions()->set_oldest(kProtocolOldest);
  request.set_role(v1::ROLE_WORKER);
  request.set_request_token(numbered_token(options.request_token, sessions_opened));
  request.set_worker_name(options.worker_name);
  request.set_node(options.node);
  request.set_boot_id(options.boot_id);
  request.set_life_lock_held(owns_name);
  request.set_proven_at(proven_at);
  request.set_epoch_seen(epoch_seen);
  request.set_store_id_seen(store_id);
  request.set_host_memory_bytes(options.host_memory_bytes);
  for (const std::string& name : options.write_order) request.add_write_order(name);
  actions.emplace_back(std::move(call));
}

void AgentState::session_opened(const Result<v1::OpenSessionResponse>& answer) {
  if (!answer)
    return is_fatal(answer.error().reason) ? fail(answer.error()) : detach(answer.error());
  // Who is dead does not answer this.
  if (answer->prove_again() > proven_at) {
    proven_at = answer->prove_again();
    return begin_attempt();
  }
  if (answer->version() < kProtocolOldest || answer->version() > kProtocolNewest) {
    return fail({Reason::kUnsupportedVersion,
                 "the server chose protocol version " + std::to_string(answer->version()) +
                     "; this worker speaks " + std::to_string(kProtocolOldest) + " to " +
                     std::to_string(kProtocolNewest)});
  }
  ++sessions_opened;
  store_id.clear();  // nothing is held: whatever store this is, it is ours now
  note_store(answer->store());
  session = SessionId(answer->session());
  token = answer->token();
  incarnation = answer->incarnation();
  take_terms(*answer);
  note(Note::Level::kInfo, "session_opened",
       {{"session", to_text(session)},
        {"store", std::to_string(epoch_seen)},
        {"predecessor_clients", std::to_string(answer->predecessor_clients_size())},
        {"orphan_pools", std::to_string(answer->orphan_pools_size())}});
  expect_strangers(answer->predecessor_clients());
  for (const v1::OrphanPool& orphan : answer->orphan_pools()) {
    auto& importers = orphans[PoolId(orphan.pool())];
    importers.insert(orphan.importers().begin(), orphan.importers().end());
    for (const std::string& life_name : importers) watch(life_name);
  }
  open_reattach();
}

// False: it is another store than the one that the ledger was filled under.
bool AgentState::note_store(const v1::StoreIdentity& store) {
  if (!store_id.empty() && store.store_id() != store_id) return false;
  store_id = store.store_id();
  epoch_seen = std::max(epoch_seen, store.epoch());
  return true;
}

void AgentState::open_reattach() {
  enter(Stage::kReattaching, options.attach_within);
  ledger.take_acknowledgements();  // the ledger itself reports what was reclaimed
  acknowledged.clear();
  unjudged.clear();
  ledger_ended = false;
  actions.emplace_back(OpenReattach{connection});
  v1::ReattachRequest message;
  v1::ReattachHello& hello = *message.mutable_hello();
  hello.mutable_caller()->set_session(session.value());
  hello.mutable_caller()->set_token(token);
  hello.mutable_caller()->set_incarnation(incarnation);
  hello.set_epoch_seen(epoch_seen);
  hello.set_store_id_seen(store_id);
  hello.set_boot_id(options.boot_id);
  actions.emplace_back(SendReattach{connection, std::move(message)});
}

void AgentState::reattach_welcomed(const v1::ReattachWelcome& welcome) {
  if (welcome.foreign_store() || !note_store(welcome.store())) {
    return drain("the server has another store", Name::kOurs);
  }
  incarnation = welcome.incarnation();
  take_terms(welcome);
  enter(Stage::kReattaching, options.attach_within);
  std::set<SessionId> known;
  for (const v1::ClientInfo& info : welcome.clients()) known.insert(SessionId(info.session()));
  for (auto& [id, client] : clients) {
    if (!known.count(id)) tell_rejoin(client, "the server does not know this session");
  }
  expect_strangers(welcome.clients());

  ledger_order = ledger.reattach_order();
  ledger_next = 0;
  lease_order.clear();
  for (const auto& [lease, held] : ledger.leases()) lease_order.push_back(lease);
  lease_next = 0;
  send_chunks();
}

void AgentState::send_chunks() {
  while (unjudged.size() < options.reattach_window) {
    if (send_replica_chunk() || send_lease_chunk()) continue;
    if (ledger_ended) return;
    ledger_ended = true;
    v1::ReattachRequest message;
    v1::ReattachEnd& end = *message.mutable_end();
    for (const auto& [id, client] : clients) {
      if (client.ending == Ending::kNo) end.add_clients(id.value());
    }
    actions.emplace_back(SendReattach{connection, std::move(message)});
    actions.emplace_back(EndReattach{connection});
    return;
  }
}

size_t AgentState::chunk_max() const {
  return std::min<size_t>(options.reattach_chunk_max, limits.batch_items_max());
}

bool AgentState::send_replica_chunk() {
  const pool::LedgerChunkView view = ledger.reattach_chunk(ledger_order, ledger_next, chunk_max());
  if (view.entries.empty()) return false;
  v1::ReattachRequest message;
  v1::LedgerChunk& chunk = *message.mutable_chunk();
  chunk.set_pool(view.pool.value());
  chunk.set_namespace_fingerprint(to_bytes(view.name_space.fingerprint));
  chunk.set_digest_bytes(view.name_space.digest_bytes);
  std::vector<ReplicaId> replicas;
  for (const pool::LedgerEntry* entry : view.entries) {
    replicas.push_back(entry->replica);
    chunk.add_replicas(entry->replica.value());
    chunk.mutable_digests()->append(entry->digest());
    chunk.add_shards(entry->shard);
    chunk.add_parts(entry->part);
    chunk.add_offsets(entry->offset);
    chunk.add_sizes(entry->size_bytes);
    chunk.add_states(wire_state(entry->state));
  }
  unjudged.push_back(std::move(replicas));
  actions.emplace_back(SendReattach{connection, std::move(message)});
  return true;
}

// Leases come after every replica, about a chunk's worth of names at a time.
bool AgentState::send_lease_chunk() {
  v1::ReattachRequest message;
  v1::LedgerChunk& chunk = *message.mutable_chunk();
  size_t named = 0;
  for (; lease_next < lease_order.size() && named < chunk_max(); ++lease_next) {
    const auto held = ledger.leases().find(lease_order[lease_next]);
    if (held == ledger.leases().end()) continue;  // released meanwhile
    v1::HeldLease& lease = *chunk.add_leases();
    lease.set_lease(held->first.value());
    lease.set_client_session(held->second.client.value());
    lease.set_operation(held->second.operation);
    for (const ReplicaId replica : held->second.replicas) lease.add_replicas(replica.value());
    for (const ReplicaId replica : held->second.imported) lease.add_replicas(replica.value());
    named += held->second.replicas.size() + held->second.imported.size();
  }
  if (chunk.leases_size() == 0) return false;
  unjudged.emplace_back();
  actions.emplace_back(SendReattach{connection, std::move(message)});
  return true;
}

void AgentState::verdicts_received(const v1::LedgerVerdicts& verdicts) {
  enter(Stage::kReattaching, options.attach_within);
  if (unjudged.empty() ||
      static_cast<size_t>(verdicts.verdicts_size()) != unjudged.front().size()) {
    return detach({Reason::kInternal, "the server's verdicts do not fit the ledger's chunk"});
  }
  const std::vector<ReplicaId> replicas = std::move(unjudged.front());
  unjudged.pop_front();
  for (size_t i = 0; i < replicas.size(); ++i) {
    const auto verdict = static_cast<pool::Verdict>(verdicts.verdicts(static_cast<int>(i)));
    const pool::LedgerEntry* entry = ledger.find(replicas[i]);
    if (entry) settle_in_doubt(replicas[i], entry->client, verdict);
    switch (ledger.apply(verdict, replicas[i])) {
      case pool::VerdictCode::kWaiting:
      case pool::VerdictCode::kQuarantined:
        stop_writers(std::vector{replicas[i]});
        break;
      case pool::VerdictCode::kNonsense:
        note(Note::Level::kWarning, "verdict_refused",
             {{"replica", to_text(replicas[i])},
              {"verdict", std::to_string(static_cast<int>(verdict))}});
        break;
      default:
        break;
    }
  }
  send_chunks();
}

void AgentState::reattach_done(const v1::ReattachDone& done) {
  for (const auto& chunk : unjudged) {
    if (!chunk.empty()) return detach({Reason::kInternal, "the server left a chunk unjudged"});
  }
  if (!ledger_ended) return detach({Reason::kInternal, "the server ended an unfinished re-attach"});
  unjudged.clear();
  ledger_order.clear();
  lease_order.clear();
  finish_doubtful_commits();
  note(Note::Level::kInfo, "reattached",
       {{"session", to_text(session)},
        {"incarnation", std::to_string(incarnation)},
        {"replicas", std::to_string(ledger.entry_count())},
        {"dropped", std::to_string(done.dropped())}});
  enter(Stage::kLinking, options.attach_within);
  actions.emplace_back(OpenLink{connection});
  v1::LinkRequest message;
  v1::Caller& caller = *message.mutable_hello()->mutable_caller();
  caller.set_session(session.value());
  caller.set_token(token);
  caller.set_incarnation(incarnation);
  send(std::move(message));
}

void AgentState::link_welcomed(const v1::LinkWelcome& welcome) {
  if (stage != Stage::kLinking) return;
  if (!note_store(welcome.store())) return drain("the server has another store", Name::kOurs);
  stage = Stage::kAttached;
  send_heartbeat();
  for (auto& [correlation, request] : requests) transmit(request);
  for (auto& [id, client] : clients) {
    resolve_loads(client);
    owing.insert(id);
  }
  actions.emplace_back(Introduce{session, store_id});
  restate_imports();
  push_server_state();
  note(Note::Level::kInfo, "attached", {{"session", to_text(session)}});
}

void AgentState::detach(const Error& error) {
  if (stage == Stage::kDraining || stage == Stage::kFailed) return;
  if (error.reason == Reason::kUnknownSession || error.reason == Reason::kWrongToken ||
      error.reason == Reason::kSessionFenced) {
    // Said of the worker's own session, unless a commit's outcome is asked for (see
    // operation_refused): the next re-attach shows which.
    if (stage == Stage::kReattaching || stage == Stage::kLinking)
      return drain(error.message, Name::kInDoubt);
  }
  const bool was_attached = stage == Stage::kAttached;
  actions.emplace_back(CloseConnection{connection});
  enter(Stage::kWaiting, {});
  next_attempt = now + backoff.next();
  drop_requests();
  if (was_attached) push_server_state();
  // A long outage is not a line every other second.
  const bool is_news = was_attached || backoff.failures() == 1;
  if (!is_news && backoff.failures() % kQuietFailures != 0) return;
  note(is_news ? Note::Level::kWarning : Note::Level::kInfo, "detached",
       {{"reason", std::string(name_of(error.reason))},
        {"message", error.message},
        {"tries", std::to_string(backoff.failures())},
        {"retry_in_ms", std::to_string((next_attempt - now).millis)}});
}

// The ids that the ledger holds mean nothing to this server. Nothing is offered until every client
// has let go; then a new session starts from nothing.
void AgentState::drain(const std::string& why, Name name) {
  owns_name = name == Name::kOurs;
  actions.emplace_back(CloseConnection{connection});
  note(Note::Level::kWarning, "draining",
       {{"reason", why},
        {"replicas", std::to_string(ledger.entry_count())},
        {"clients", std::to_string(clients.size())}});
  enter(Stage::kDraining, {});
  session = {};
  token.clear();
  drop_requests();
  end_sharing();
  for (auto& [correlation, request] : std::exchange(requests, {})) {
    const auto pending = pending_joins.find(request.join);
    if (pending != pending_joins.end()) pending->second.sent = false;
  }
  // No session of the old server can be resumed, and an engine that waits for that would keep what
  // the draining waits for.
  std::erase_if(pending_joins, [&](const auto& entry) {
    const PendingJoin& join = entry.second;
    if (join.hello.resume_session() == 0) return false;
    if (!join.stream_ended)
      actions.emplace_back(EndJoin{entry.first, {Reason::kUnknownSession, why}});
    return true;
  });
  strangers.clear();
  orphans.clear();
  orphans_sent.clear();
  namespaces.clear();
  for (auto& [id, client] : clients) {
    for (auto& [number, operation] : client.operations) {
      if (operation.kind != OperationKind::kFinish || operation.reply) continue;
      for (const Operation::Sent& item : operation.sent) {
        operation.codes[item.index] = static_cast<char>(v1::COMMIT_CODE_CLOSED);
      }
      finish_answered(client, operation);
    }
    client.committing.clear();
    client.aborting.clear();
    client.releasing.clear();
    client.unresolved.clear();
    tell_rejoin(client, why);
  }
  for (const ReplicaId replica : ledger.reattach_order()) {
    ledger.apply(pool::Verdict::kFree, replica);
  }
  std::vector<SessionId> gone;
  for (const auto& [id, client] : clients) {
    if (client.ending != Ending::kNo) gone.push_back(id);
  }
  for (const SessionId id : gone) client_ended(id);
}

void AgentState::finish_draining_if_empty() {
  ledger.take_acknowledgements();
  // What others map of our memory is theirs to read until they let go: it is offered anew only
  // then.
  if (!clients.empty() || ledger.entry_count() > 0 || !exports.empty()) return;
  for (PoolSlot& slot : pools) {
    if (slot.id.valid()) {
      const auto removed = ledger.remove_pool(slot.id);
      BERTH_CHECK(removed.has_value(), "an empty pool can be removed");
    }
    slot.id = {};
    slot.was_tried = false;
    slot.claimed_by.clear();
  }
  note(Note::Level::kInfo, "drained", {});
  enter(Stage::kWaiting, {});
  next_attempt = now;
}

void AgentState::fail(const Error& error) {
  actions.emplace_back(CloseConnection{connection});
  enter(Stage::kFailed, {});
  drop_requests();
  push_server_state();
  actions.emplace_back(Fatal{error});
}

void AgentState::tick_attachment() {
  switch (stage) {
    case Stage::kWaiting:
      if (now >= next_attempt && !stopping) begin_attempt();
      return;
    case Stage::kOpening:
    case Stage::kReattaching:
    case Stage::kLinking:
      if (now >= stage_deadline) {
        detach({Reason::kDeadlineExceeded, "the server did not answer while attaching"});
      }
      return;
    case Stage::kAttached:
      if (now - heard_at > heartbeat_deadline * 2) {
        return detach({Reason::kDeadlineExceeded, "the server is silent"});
      }
      if (now >= heartbeat_at) send_heartbeat();
      return;
    case Stage::kDraining:
    case Stage::kFailed:
      return;
  }
}

void AgentState::register_pools() {
  for (size_t i = 0; i < pools.size(); ++i) {
    if (pools[i].id.valid() || pools[i].is_sent || now < pools[i].try_at) continue;
    pools[i].is_sent = true;
    Request wanted;
    wanted.kind = RequestKind::kRegisterPool;
    wanted.pool_slot = i;
    *wanted.message.mutable_register_pool()->mutable_spec() = pools[i].spec;
    keep(std::move(wanted));
  }
}

void AgentState::pool_registered(const Request& request,
                                 const Result<v1::RegisterPoolResponse>& answer) {
  PoolSlot& slot = pools[request.pool_slot];
  slot.is_sent = false;
  if (!answer) {
    slot.try_at = now + options.pool_retry_every;
    // The session was fenced a moment ago: the end of the Link is on its way.
    if (judge(answer.error()) == Refusal::kNoSession) return;
    // The memory of a dead predecessor may still be charged: room comes with its last importer.
    const bool may_pass = answer.error().reason == Reason::kBudgetExceeded ||
                          answer.error().reason == Reason::kLimitReached ||
                          judge(answer.error()) == Refusal::kAgain;
    if (!may_pass) return fail(answer.error());
    if (!slot.was_tried) {
      note(Note::Level::kWarning, "pool_refused",
           {{"pool", slot.spec.name()}, {"message", answer.error().message}});
    }
    slot.was_tried = true;
    return;
  }
  const PoolId id(answer->pool());
  const auto added = ledger.add_pool({.pool = id,
                                      .page_bytes = slot.spec.page_bytes(),
                                      .capacity_bytes = slot.spec.capacity_bytes(),
                                      .budget_bytes = slot.spec.budget_bytes()});
  if (!added) return fail(added.error());
  const bool is_late = std::exchange(slot.was_tried, true);
  slot.id = id;
  note(Note::Level::kInfo, "pool_registered",
       {{"pool", to_text(id)},
        {"name", slot.spec.name()},
        {"bytes", std::to_string(slot.spec.capacity_bytes())}});
  // Who joined before cannot reach it, and the server does not know that.
  if (!is_late) return;
  for (auto& [session_id, client] : clients) tell_rejoin(client, "a pool was added");
}

}  // namespace berth::worker
