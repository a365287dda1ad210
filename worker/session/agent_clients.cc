// Engines: who joined, under which session, who goes and what is said about it.
#include "common/names.h"
#include "worker/session/agent_state.h"
#include "worker/session/wire.h"

namespace berth::worker {
namespace {

// A stream that broke and came back adds a life lock; the old ones go when the client closes them.
constexpr size_t kLifeNamesMax = 8;

Error rejoin_error(const std::string& why) { return {Reason::kRejoin, why}; }

}  // namespace

Client* AgentState::find_client(SessionId id) {
  const auto found = clients.find(id);
  return found == clients.end() ? nullptr : &found->second;
}

Client* AgentState::client_of(JoinId join) {
  const auto found = client_by_join.find(join);
  return found == client_by_join.end() ? nullptr : find_client(found->second);
}

void AgentState::client_joined(Agent::Join join) {
  const auto refused = check_join(join);
  if (!refused) {
    actions.emplace_back(EndJoin{join.join, refused.error()});
    return;
  }
  PendingJoin pending;
  pending.join = join.join;
  pending.hello = std::move(join.hello);
  pending.life_name = std::move(join.life_name);
  pending.request_token = std::move(join.request_token);
  pending.ticket = std::move(join.ticket);
  pending_joins.emplace(pending.join, std::move(pending));
}

Result<> AgentState::check_join(const Agent::Join& join) {
  const v1::JoinHello& hello = join.hello;
  if (hello.versions().newest() < kProtocolOldest || hello.versions().oldest() > kProtocolNewest) {
    return refuse(Reason::kUnsupportedVersion,
                  "the client speaks protocol versions " +
                      std::to_string(hello.versions().oldest()) + " to " +
                      std::to_string(hello.versions().newest()) + ", this worker " +
                      std::to_string(kProtocolOldest) + " to " + std::to_string(kProtocolNewest));
  }
  if (const auto valid = validate_name("engine_id", hello.engine_id()); !valid) return valid;
  if (stopping) return refuse(Reason::kUnavailable, "this worker is stopping");
  if (clients.size() + pending_joins.size() >= options.clients_max) {
    return refuse(Reason::kLimitReached,
                  "this worker has " + std::to_string(clients.size()) +
                      " clients, clients_max = " + std::to_string(options.clients_max));
  }
  if (hello.resume_session() == 0) return {};
  const Client* client = find_client(SessionId(hello.resume_session()));
  if (!client) return {};  // the server decides
  if (client->token != hello.resume_token()) {
    return refuse(Reason::kWrongToken, "resume_token is not this session's");
  }
  if (!client->is_live() || client->life_names.size() >= kLifeNamesMax) {
    return refuse(Reason::kUnknownSession, "this session cannot be resumed; join without it");
  }
  return {};
}

void AgentState::send_pending_joins() {
  if (stopping) return;
  for (const PoolSlot& slot : pools) {
    if (!slot.was_tried) return;  // a welcome names every pool
  }
  for (auto& [id, join] : pending_joins) {
    if (!join.sent) send_open_client(join);
  }
}

void AgentState::send_open_client(PendingJoin& join) {
  join.sent = true;
  Request wanted;
  wanted.kind = RequestKind::kOpenClient;
  wanted.join = join.join;
  v1::OpenSessionRequest& open = *wanted.message.mutable_open_client();
  open.mutable_versions()->set_newest(kProtocolNewest);
  open.mutable_versions()->set_oldest(kProtocolOldest);
  open.set_role(v1::ROLE_CLIENT);
  open.set_request_token(join.request_token);
  open.set_engine_id(join.hello.engine_id());
  open.set_life_name(join.life_name);
  open.set_resume_session(join.hello.resume_session());
  open.set_resume_token(join.hello.resume_token());
  keep(std::move(wanted));
}

void AgentState::client_opened(const Request& request,
                               const Result<v1::OpenSessionResponse>& answer) {
  auto found = pending_joins.extract(request.join);
  if (found.empty()) {
    if (answer) disown(SessionId(answer->session()));
    return;
  }
  const PendingJoin& join = found.mapped();
  if (!answer) {
    note(Note::Level::kWarning, "join_refused",
         {{"engine", join.hello.engine_id()}, {"message", answer.error().message}});
    if (!join.stream_ended) actions.emplace_back(EndJoin{join.join, answer.error()});
    return;
  }
  const SessionId id(answer->session());
  Client& client = clients[id];
  if (client.join.valid()) {  // resumed while the old stream is still open
    client_by_join.erase(client.join);
    actions.emplace_back(EndJoin{client.join, rejoin_error("the session was resumed elsewhere")});
  }
  const bool is_new = !client.session.valid();
  client.session = id;
  client.token = answer->token();
  client.engine_id = join.hello.engine_id();
  client.join = {};
  client.life_names.push_back(join.life_name);
  if (is_new) client.low_water = answer->operation_low_water();
  if (is_new) client.is_taken_over = join.hello.resume_session() == id.value();
  if (const auto stranger = strangers.find(id); stranger != strangers.end()) {
    for (const std::string& held : stranger->second.life_names)
      client.life_names.push_back(held);  // it may hold the old locks as well
    strangers.erase(stranger);
  }
  if (join.stream_ended) {
    for (const std::string& name : client.life_names) watch(name);
    return;
  }
  welcome(client, join, *answer);
}

// A join that was sent again opens a second session when the first has ended meanwhile. Nobody was
// told of it, so nobody holds anything under it.
void AgentState::disown(SessionId id) {
  if (find_client(id)) return;
  Request wanted;
  wanted.kind = RequestKind::kEndClient;
  wanted.client = id;
  wanted.message.mutable_close_session()->set_client_session(id.value());
  keep(std::move(wanted));
}

void fill_pool(v1::JoinPool& pool, const PoolSlot& slot, Access access) {
  pool.set_pool(slot.id.value());
  pool.set_name(slot.spec.name());
  pool.set_medium(slot.spec.medium());
  pool.set_tier(slot.spec.tier());
  pool.set_scope(slot.spec.scope());
  pool.set_map_bytes(slot.map_bytes);
  pool.set_page_bytes(slot.spec.page_bytes());
  pool.set_writable(access == Access::kWrite);
}

void AgentState::welcome(Client& client, const PendingJoin& join,
                         const v1::OpenSessionResponse& answer) {
  client.join = join.join;
  client_by_join[join.join] = client.session;
  client.pools = claim_pools(client.engine_id);
  client.imports.clear();  // told again, to the new join
  Welcome action{join.join, client.session, {}, client.pools};
  v1::JoinWelcome& message = action.message;
  message.set_version(kProtocolNewest);
  message.set_client_session(client.session.value());
  message.set_token(client.token);
  message.set_worker_incarnation(options.process);
  message.set_descriptor_ticket(join.ticket);
  for (const size_t index : client.pools) {
    const PoolSlot& slot = pools[index];
    fill_pool(*message.add_pools(), slot, Access::kWrite);
  }
  *message.mutable_limits() = limits;
  message.set_worker_name(options.worker_name);
  OperationNumber used = std::max(client.low_water, answer.operation_low_water());
  if (!client.operations.empty()) used = std::max(used, client.operations.rbegin()->first);
  message.set_operation_low_water(used);
  actions.emplace_back(std::move(action));
  note(Note::Level::kInfo, "client_joined",
       {{"session", to_text(client.session)},
        {"engine", client.engine_id},
        {"pools", std::to_string(client.pools.size())}});
  grant_imports(client);
  repeat_requests_to(client);
}

// What the server asked for while the client's stream was gone.
void AgentState::repeat_requests_to(Client& client) {
  std::set<OperationNumber> open;
  for (const ReplicaId replica : ledger.open_of(client.session)) {
    open.insert(ledger.find(replica)->operation);
  }
  std::erase_if(client.cancelled, [&](OperationNumber number) { return !open.count(number); });
  for (const OperationNumber number : client.cancelled) {
    v1::JoinResponse message;
    message.mutable_cancel()->set_operation(number);
    push(client, std::move(message));
  }
  for (const LeaseId lease : client.revoked) {
    v1::JoinResponse message;
    message.mutable_revoke()->set_handle(lease.value());
    message.mutable_revoke()->set_operation(ledger.leases().at(lease).operation);
    push(client, std::move(message));
  }
}

std::vector<size_t> AgentState::claim_pools(const std::string& engine_id) {
  std::vector<size_t> mapped;
  for (size_t i = 0; i < pools.size(); ++i) {
    PoolSlot& slot = pools[i];
    if (!slot.id.valid()) continue;
    if (slot.spec.scope() == v1::SCOPE_PROCESS) {
      if (slot.claimed_by.empty()) {
        slot.claimed_by = slot.spec.engine().empty() ? engine_id : slot.spec.engine();
      }
      if (slot.claimed_by != engine_id) continue;
    }
    mapped.push_back(i);
  }
  return mapped;
}

void AgentState::stream_ended(JoinId join) {
  if (const auto pending = pending_joins.find(join); pending != pending_joins.end()) {
    if (!pending->second.sent) {
      pending_joins.erase(pending);
    } else {
      pending->second.stream_ended = true;  // its session may exist by now
    }
    return;
  }
  Client* client = client_of(join);
  client_by_join.erase(join);
  if (!client) return;
  client->join = {};
  for (const std::string& name : client->life_names) watch(name);
}

Result<Client*> AgentState::admit(const v1::ClientCaller& caller, Admit who) {
  if (caller.worker_incarnation() != options.process) {
    return tl::unexpected(rejoin_error("worker_incarnation names another worker process"));
  }
  Client* client = find_client(SessionId(caller.client_session()));
  const bool is_welcome =
      client && client->ending == Ending::kNo && (!client->rejoining || who == Admit::kAll);
  if (!is_welcome) {
    return tl::unexpected(rejoin_error("client_session is not attached to this worker"));
  }
  if (client->token != caller.token()) {
    return refuse(Reason::kWrongToken, "token is not this session's");
  }
  raise_low_water(*client, caller.operation_low_water());
  return client;
}

void AgentState::raise_low_water(Client& client, OperationNumber mark) {
  if (mark <= client.low_water) return;
  client.low_water = mark;
  forget_passed(client);
  // The server forgets answers by what heartbeats say; a busy client must not fill its window
  // between two of them.
  if (mark - client.low_water_told > limits.operations_max() / 4) heartbeat_at = now;
}

// A call that was sent twice may be answered when the mark has passed it already.
void AgentState::forget_passed(Client& client) {
  for (auto it = client.operations.begin();
       it != client.operations.end() && it->first <= client.low_water;) {
    it = it->second.reply ? client.operations.erase(it) : std::next(it);
  }
}

// Never past what is still on its way: a repeated request must find its answer.
OperationNumber AgentState::low_water_to_tell(const Client& client) const {
  OperationNumber mark = client.low_water;
  if (!client.unresolved.empty()) mark = std::min(mark, *client.unresolved.begin() - 1);
  for (const auto& [number, operation] : client.operations) {
    if (number > mark) break;
    if (!operation.reply) return std::min(mark, number - 1);
  }
  return mark;
}

void AgentState::leave(CallId call, Client& client) {
  client.leave_calls.push_back(call);
  const SessionId id = client.session;
  note(Note::Level::kInfo, "client_left", {{"session", to_text(id)}});
  end_client(client, Ending::kLeft);
  Client* left = find_client(id);
  if (!left || stage == Stage::kAttached) return;
  // It unmapped everything; the server hears of it when it can be reached.
  for (const CallId waiting : std::exchange(left->leave_calls, {})) {
    answer(waiting, Reply(v1::LeaveResponse()));
  }
}

void AgentState::tell_rejoin(Client& client, const std::string& why) {
  if (!client.is_live()) return;
  client.rejoining = true;
  note(Note::Level::kWarning, "client_must_rejoin",
       {{"session", to_text(client.session)}, {"reason", why}});
  v1::JoinResponse message;
  message.mutable_rejoin()->set_reason(why);
  push(client, std::move(message));
  for (const std::string& name : client.life_names) watch(name);
}

void AgentState::end_client(Client& client, Ending ending) {
  if (client.ending != Ending::kNo) return;
  client.ending = ending;
  std::vector<LeaseId> leases;
  for (const auto& [lease, held] : ledger.leases()) {
    if (held.client == client.session) leases.push_back(lease);
  }
  client.releasing.insert(leases.begin(), leases.end());
  client.revoked.clear();
  client.cancelled.clear();
  for (const ReplicaId replica : ledger.drop_client(client.session)) {
    if (!client.committing.count(replica)) client.aborting.insert(replica);
  }
  owing.insert(client.session);
  if (stage == Stage::kDraining) client_ended(client.session);
}

// Finished stores land first: after its end the server could not say any more what became of them.
void AgentState::advance_ending(Client& client) {
  if (client.ending == Ending::kNo || client.end_sent) return;
  if (!client.committing.empty() || !client.aborting.empty() || !client.releasing.empty() ||
      !client.unresolved.empty()) {
    return;
  }
  for (const auto& [number, operation] : client.operations) {
    if (!operation.reply) return;
  }
  if (client.ending == Ending::kDisowned) return client_ended(client.session);
  client.end_sent = true;
  Request wanted;
  wanted.kind = RequestKind::kEndClient;
  wanted.client = client.session;
  if (client.ending == Ending::kLeft) {
    wanted.message.mutable_close_session()->set_client_session(client.session.value());
  } else {
    wanted.message.mutable_fence_client()->set_client_session(client.session.value());
    wanted.message.mutable_fence_client()->set_proof(v1::FenceClientRequest::PROOF_LIFE_LOCK);
  }
  keep(std::move(wanted));
}

void AgentState::client_ended(SessionId id) {
  strangers.erase(id);
  auto found = clients.extract(id);
  if (found.empty()) return;
  const Client& client = found.mapped();
  for (const CallId call : client.leave_calls) answer(call, Reply(v1::LeaveResponse()));
  if (client.join.valid()) {
    client_by_join.erase(client.join);
    actions.emplace_back(EndJoin{client.join, rejoin_error("the session ended")});
  }
  note(Note::Level::kInfo, "client_ended",
       {{"session", to_text(id)}, {"engine", client.engine_id}});
}

void AgentState::push(const Client& client, v1::JoinResponse message) {
  if (client.join.valid()) actions.emplace_back(Push{client.join, std::move(message)});
}

void AgentState::push_server_state() {
  for (const auto& [id, client] : clients) {
    v1::JoinResponse message;
    message.mutable_server_state()->set_reachable(stage == Stage::kAttached);
    push(client, std::move(message));
  }
}

void AgentState::open_namespace(CallId call, const v1::WorkerOpenNamespaceRequest& request) {
  Request wanted;
  wanted.kind = RequestKind::kOpenNamespace;
  wanted.call = call;
  wanted.give_up_at = now + options.attach_within;
  *wanted.message.mutable_open_namespace()->mutable_spec() = request.spec();
  if (!submit(std::move(wanted))) {
    answer(call, refuse(Reason::kUnavailable, "the server is out of reach"));
  }
}

void AgentState::namespace_opened(const Request& request,
                                  const v1::OpenNamespaceResponse& response) {
  const v1::NamespaceSpec& spec = response.spec();
  const Fingerprint fingerprint = id128_from_bytes(response.fingerprint());
  if (fingerprint.valid() && spec.digest_bytes() > 0) {
    namespaces[response.namespace_id()] = {fingerprint, spec.digest_bytes()};
  }
  answer(request.call, Reply(response));
}

}  // namespace berth::worker
