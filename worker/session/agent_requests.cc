// Requests on their way to berthd: sent again until answered, told apart by what their refusal or
// the loss of the Link means.
#include "worker/session/agent_state.h"
#include "worker/session/wire.h"

namespace berth::worker {
namespace {

// So many releases of a client do not wait for more, nor do half of what it may have at all.
constexpr size_t kReleasesTogether = 64;

v1::MissReason miss_of(const Error& error) {
  return error.reason == Reason::kStoreDegraded ? v1::MISS_REASON_STORE_DEGRADED
                                                : v1::MISS_REASON_UNAVAILABLE;
}

Error rejoin_error() { return {Reason::kRejoin, "the server does not know this session any more"}; }

}  // namespace

bool AgentState::submit(Request request) {
  if (!is_attached() || requests.size() >= options.requests_max) return false;
  keep(std::move(request));
  return true;
}

void AgentState::keep(Request request) {
  const uint64_t correlation = ++correlations_used;
  request.message.set_correlation(correlation);
  request.send_at = now;
  Request& kept = requests.emplace(correlation, std::move(request)).first->second;
  if (stage == Stage::kAttached) transmit(kept);
}

void AgentState::transmit(Request& request) {
  request.send_at = now + options.retry_after;
  send(request.message);
}

void AgentState::send(v1::LinkRequest message, Urgency urgency) {
  actions.emplace_back(SendLink{connection, std::move(message), urgency});
}

void AgentState::resend_due() {
  std::vector<uint64_t> given_up;
  for (auto& [correlation, request] : requests) {
    if (request.give_up_at && *request.give_up_at <= now) {
      given_up.push_back(correlation);
    } else if (request.send_at <= now && stage == Stage::kAttached) {
      transmit(request);
    }
  }
  for (const uint64_t correlation : given_up) {
    const Request request = std::move(requests.at(correlation));
    requests.erase(correlation);
    answer_unavailable(request, v1::MISS_REASON_UNAVAILABLE);
  }
}

void AgentState::link_received(const v1::LinkResponse& message) {
  if (message.correlation() == 0) return pushed(message);
  const auto found = requests.find(message.correlation());
  if (found == requests.end()) {  // answered before, or given up
    if (message.has_open_client()) disown(SessionId(message.open_client().session()));
    return;
  }
  const bool is_error = message.body_case() == v1::LinkResponse::kError;
  // Requests and their answers have the same field numbers.
  if (!is_error && static_cast<int>(message.body_case()) !=
                       static_cast<int>(found->second.message.body_case())) {
    return;
  }
  if (is_error) {
    const Error error = error_from_wire(message.error());
    if (judge(error) == Refusal::kStale) return detach(error);
  }
  Request request = std::move(found->second);
  requests.erase(found);
  // Whatever came of it, it may have been the last thing that the client's end waits for.
  if (request.client.valid()) owing.insert(request.client);
  if (is_error)
    refused(message.correlation(), std::move(request), error_from_wire(message.error()));
  else
    answered(request, message);
}

void AgentState::answered(const Request& request, const v1::LinkResponse& message) {
  Client* client = find_client(request.client);
  switch (request.kind) {
    case RequestKind::kOperation:
      if (!client) return;
      if (message.has_reserve()) {
        reserved(*client, request.operation, request.message.reserve(), message.reserve());
      } else if (message.has_commit()) {
        committed(*client, request.operation, message.commit());
      } else {
        acquired(*client, request.operation, message.acquire());
      }
      return;
    case RequestKind::kProbe:
      return answer(request.call, Reply(message.probe()));
    case RequestKind::kRenew:
      return renewed(request, message.renew());
    case RequestKind::kOpenNamespace:
      return namespace_opened(request, message.open_namespace());
    case RequestKind::kOpenClient:
      return client_opened(request, message.open_client());
    case RequestKind::kAbort:
      if (!client) return;
      client->abort_sent = false;
      return abort_answered(*client, request.named);
    case RequestKind::kRelease:
      if (!client) return;
      client->release_sent = false;
      return release_answered(*client, request.named);
    case RequestKind::kEndClient:
      return client_ended(request.client);
    case RequestKind::kReleaseOrphan:
      orphans.erase(request.orphan);
      orphans_sent.erase(request.orphan);
      return note(Note::Level::kInfo, "orphan_released", {{"pool", to_text(request.orphan)}});
    case RequestKind::kRegisterPool:
      return pool_registered(request, message.register_pool());
    case RequestKind::kExportPool:
      return export_answered(request.life_name, {});
    case RequestKind::kImportPool:
      return import_answered(request.import, request.life_name, {});
    case RequestKind::kEndExport:
      exports.erase(request.life_name);
      return;
    case RequestKind::kResolve:
      if (client) resolved(*client, request.operation, message.resolve());
      return;
  }
}

void AgentState::put_back(uint64_t correlation, Request request) {
  request.send_at = now + options.retry_pause;
  requests.emplace(correlation, std::move(request));
}

void AgentState::refused(uint64_t correlation, Request request, const Error& error) {
  const Refusal refusal = judge(error);
  Client* client = find_client(request.client);
  switch (request.kind) {
    case RequestKind::kOperation:
      if (client) operation_refused(correlation, std::move(request), *client, error);
      return;
    case RequestKind::kProbe:
      if (refusal == Refusal::kAgain) return answer_unavailable(request, miss_of(error));
      [[fallthrough]];
    case RequestKind::kRenew:
      if (refusal == Refusal::kNoSession) {
        if (client) tell_rejoin(*client, error.message);
        return answer(request.call, tl::unexpected(rejoin_error()));
      }
      [[fallthrough]];
    case RequestKind::kOpenNamespace:
      return answer(request.call, tl::unexpected(error));
    case RequestKind::kOpenClient:
      return client_opened(request, tl::unexpected(error));
    case RequestKind::kRegisterPool:
      return pool_registered(request, tl::unexpected(error));
    case RequestKind::kExportPool:
      if (refusal == Refusal::kAgain) return put_back(correlation, std::move(request));
      return export_answered(request.life_name, tl::unexpected(error));
    case RequestKind::kImportPool:
      if (refusal == Refusal::kAgain) return put_back(correlation, std::move(request));
      return import_answered(request.import, request.life_name, tl::unexpected(error));
    case RequestKind::kAbort:
    case RequestKind::kEndExport:
    case RequestKind::kRelease:
    case RequestKind::kEndClient:
    case RequestKind::kReleaseOrphan:
    case RequestKind::kResolve:
      break;
  }
  // What gives back goes on until it is heard; a server that no longer knows the session has given
  // it back already.
  if (refusal == Refusal::kAgain) return put_back(correlation, std::move(request));
  note(Note::Level::kWarning, "give_back_refused",
       {{"session", to_text(request.client)},
        {"reason", std::string(name_of(error.reason))},
        {"message", error.message}});
  v1::LinkResponse nothing;
  answered(request, nothing);
}

void AgentState::operation_refused(uint64_t correlation, Request request, Client& client,
                                   const Error& error) {
  const Refusal refusal = judge(error);
  if (request.message.has_commit()) {
    if (refusal == Refusal::kAgain) return put_back(correlation, std::move(request));
    if (refusal == Refusal::kFinal) return commit_refused(client, request.operation);
    Operation* operation = find_unanswered(client, request.operation);
    if (!operation) return;
    operation->in_doubt = true;
    tell_rejoin(client, error.message);
    return detach({error.reason, "a commit's outcome is known only to a re-attach"});
  }
  if (refusal == Refusal::kNoSession) {
    refuse_operation(client, request.operation, rejoin_error());
    return tell_rejoin(client, error.message);
  }
  // A full window is the caller's to mend; it hears of it.
  if (refusal == Refusal::kFinal || error.reason == Reason::kOperationWindowFull) {
    return refuse_operation(client, request.operation, error);
  }
  answer_unavailable(request, miss_of(error));
}

// What an engine hears when the server does not answer. Never for what must not be forgotten.
void AgentState::answer_unavailable(const Request& request, v1::MissReason reason) {
  Client* client = find_client(request.client);
  if (request.kind == RequestKind::kProbe) {
    v1::ProbeResponse miss;
    miss.set_miss_reason(reason);
    return answer(request.call, Reply(std::move(miss)));
  }
  if (request.kind == RequestKind::kRenew || request.kind == RequestKind::kOpenNamespace) {
    return answer(request.call, refuse(Reason::kUnavailable, "the server did not answer"));
  }
  if (!client || request.kind != RequestKind::kOperation) return;
  if (request.message.has_reserve()) {
    skip_store(*client, request.operation, request.items, v1::STORE_CODE_SKIPPED_UNAVAILABLE);
  } else if (request.message.has_acquire()) {
    miss_load(*client, request.operation, reason);
  }
}

// The Link is gone. Engines do not wait for the next one; what finishes or opens something does.
void AgentState::drop_requests() {
  std::map<uint64_t, Request> dropped = std::exchange(requests, {});
  for (auto& [correlation, request] : dropped) {
    Client* client = find_client(request.client);
    const bool is_commit = request.kind == RequestKind::kOperation && request.message.has_commit();
    if (is_commit && client) {
      const Operation* operation = find_unanswered(*client, request.operation);
      if (operation && !operation->in_doubt) requests.emplace(correlation, std::move(request));
    } else if (request.kind == RequestKind::kOpenClient) {
      requests.emplace(correlation, std::move(request));
    } else if (request.kind == RequestKind::kEndClient) {
      if (client) client->end_sent = false;
      const auto stranger = strangers.find(request.client);
      if (stranger != strangers.end()) stranger->second.end_sent = false;
    } else if (request.kind == RequestKind::kReleaseOrphan) {
      orphans_sent.erase(request.orphan);
    } else if (request.kind == RequestKind::kRegisterPool) {
      pools[request.pool_slot].is_sent = false;
    } else if (request.kind == RequestKind::kExportPool ||
               request.kind == RequestKind::kEndExport) {
      if (const auto found = exports.find(request.life_name); found != exports.end())
        found->second.is_sent = found->second.end_sent = false;
    } else if (request.kind == RequestKind::kImportPool) {
      if (const auto found = imports.find(request.import); found != imports.end())
        found->second.is_sent = false;
    } else {
      if (request.message.has_acquire() && client) client->unresolved.insert(request.operation);
      answer_unavailable(request, v1::MISS_REASON_UNAVAILABLE);
    }
  }
  for (auto& [id, client] : clients) {
    client.abort_sent = false;
    client.release_sent = false;
    owing.insert(id);
  }
}

void AgentState::pushed(const v1::LinkResponse& message) {
  switch (message.body_case()) {
    case v1::LinkResponse::kReclaim:
      return reclaim(message.reclaim());
    case v1::LinkResponse::kCancel:
      return cancel(message.cancel());
    case v1::LinkResponse::kRevoke:
      return revoke(message.revoke());
    case v1::LinkResponse::kHeartbeatSeen:
      return heartbeat_seen(message.heartbeat_seen().sequence());
    case v1::LinkResponse::kClientFenced: {
      Client* client = find_client(SessionId(message.client_fenced().client_session()));
      if (!client) return;
      tell_rejoin(*client, "the session was fenced");
      return end_client(*client, Ending::kDisowned);
    }
    case v1::LinkResponse::kDropImport:
      return drop_import(PoolId(message.drop_import().pool()));
    case v1::LinkResponse::kError:
      return detach(error_from_wire(message.error()));
    default:
      return;
  }
}

void AgentState::flush() {
  send_acknowledgements();
  for (const SessionId id : owing)
    if (Client* client = find_client(id)) forget_passed(*client);
  if (stage == Stage::kDraining) finish_draining_if_empty();
  if (stage != Stage::kAttached) return;
  for (const SessionId id : std::exchange(owing, {})) {
    Client* client = find_client(id);
    if (client) flush_client(*client);
  }
  say_strangers_dead();
  release_orphans();
  register_pools();
  flush_sharing();
  send_pending_joins();
}

// Engines load and release again and again, and each release is a commit of the server. Nobody
// waits for one but an eviction, so those of a tick go together, unless the server has asked for
// one.
bool AgentState::may_send_releases(const Client& client) const {
  if (client.release_sent || client.releasing.empty()) return false;
  if (!client.release_by || *client.release_by <= now) return true;
  return stopping || !client.is_live() ||
         client.releasing.size() >= std::min<size_t>(kReleasesTogether, limits.leases_max() / 2);
}

void AgentState::owe_late_releases() {
  for (const auto& [id, client] : clients)
    if (!client.releasing.empty()) owing.insert(id);
}

void AgentState::flush_client(Client& client) {
  if (!client.abort_sent && !client.aborting.empty()) {
    client.abort_sent = true;
    Request wanted;
    wanted.kind = RequestKind::kAbort;
    wanted.client = client.session;
    v1::AbortRequest& abort = *wanted.message.mutable_abort();
    abort.set_client_session(client.session.value());
    for (const ReplicaId replica : client.aborting) {
      if (wanted.named.size() >= limits.batch_items_max()) break;
      wanted.named.push_back(replica.value());
      abort.add_replicas(replica.value());
    }
    keep(std::move(wanted));
  }
  if (may_send_releases(client)) {
    client.release_sent = true;
    client.release_by.reset();
    Request wanted;
    wanted.kind = RequestKind::kRelease;
    wanted.client = client.session;
    v1::ReleaseRequest& release = *wanted.message.mutable_release();
    release.set_client_session(client.session.value());
    for (const LeaseId lease : client.releasing) {
      if (wanted.named.size() >= limits.batch_items_max()) break;
      wanted.named.push_back(lease.value());
      release.add_leases(lease.value());
    }
    keep(std::move(wanted));
  }
  advance_ending(client);
}

}  // namespace berth::worker
