// Probes and loads: what the server protects is checked against the ledger before an engine hears
// of it, and given back when the engine says so.
#include <algorithm>

#include "worker/session/agent_state.h"
#include "worker/session/columns.h"

namespace berth::worker {
namespace {

// Locations of one chunk; zero when the columns do not fit together.
size_t locations_per_chunk(const v1::AcquireResponse& response) {
  const auto all = static_cast<size_t>(response.replicas_size());
  if (response.chunks() == 0 || all % response.chunks() != 0) return 0;
  if (response.pools_size() != response.replicas_size() ||
      response.offsets_size() != response.replicas_size() ||
      response.sizes_size() != response.replicas_size()) {
    return 0;
  }
  return all / response.chunks();
}

v1::LoadResponse missed(v1::MissReason reason) {
  v1::LoadResponse response;
  response.set_state(v1::LOAD_STATE_COMPLETE);
  response.set_miss_reason(reason);
  return response;
}

v1::ProbeResponse probe_missed() {
  v1::ProbeResponse response;
  response.set_miss_reason(v1::MISS_REASON_UNAVAILABLE);
  return response;
}

}  // namespace

void AgentState::probe(CallId call, Client& client, const v1::WorkerProbeRequest& request) {
  Request wanted;
  wanted.kind = RequestKind::kProbe;
  wanted.client = client.session;
  wanted.call = call;
  wanted.give_up_at = now + options.probe_within;
  v1::ProbeRequest& probe = *wanted.message.mutable_probe();
  probe.set_client_session(client.session.value());
  probe.set_namespace_id(request.namespace_id());
  probe.set_digests(request.digests());
  *probe.mutable_targets() = request.targets();
  if (!submit(std::move(wanted))) answer(call, Reply(probe_missed()));
}

void AgentState::load(CallId call, Client& client, const v1::LoadRequest& request) {
  const auto facts = namespaces.find(request.namespace_id());
  if (facts == namespaces.end()) {
    return answer(call, refuse(Reason::kUnknownNamespace,
                               "namespace_id = " + std::to_string(request.namespace_id()) +
                                   ": not opened through this worker"));
  }
  const auto chunks = count_digests(request.digests(), facts->second.digest_bytes, limits);
  if (!chunks) return answer(call, tl::unexpected(chunks.error()));

  Request wanted;
  wanted.kind = RequestKind::kOperation;
  wanted.client = client.session;
  wanted.operation = request.operation();
  v1::AcquireRequest& acquire = *wanted.message.mutable_acquire();
  acquire.set_client_session(client.session.value());
  acquire.set_operation(request.operation());
  acquire.set_namespace_id(request.namespace_id());
  acquire.set_digests(request.digests());
  *acquire.mutable_targets() = request.targets();
  acquire.set_ttl_ms(request.ttl_ms());
  const size_t hash = std::hash<std::string>{}(acquire.SerializeAsString());
  if (!begin_operation(call, client, request.operation(), OperationKind::kLoad, hash, {})) return;
  if (!submit(std::move(wanted))) {
    miss_load(client, request.operation(), v1::MISS_REASON_UNAVAILABLE);
  }
}

void AgentState::miss_load(Client& client, OperationNumber number, v1::MissReason reason) {
  Operation* operation = find_unanswered(client, number);
  if (operation) answer_operation(*operation, missed(reason));
}

void AgentState::acquired(Client& client, OperationNumber number,
                          const v1::AcquireResponse& response) {
  Operation* operation = find_unanswered(client, number);
  if (!operation) return;
  const LeaseId lease(response.lease());
  if (!lease.valid()) return answer_operation(*operation, missed(response.miss_reason()));

  const bool is_wanted = !operation->poisoned && client.is_live();
  const uint32_t chunks = is_wanted ? open_chunks(client, number, response) : 0;
  if (chunks == 0) {
    give_back_lease(client, lease);
    return answer_operation(*operation, missed(is_wanted ? v1::MISS_REASON_NOT_ACCESSIBLE
                                                         : v1::MISS_REASON_UNAVAILABLE));
  }
  v1::LoadResponse answer_out;
  answer_out.set_handle(lease.value());
  answer_out.set_state(v1::LOAD_STATE_COMPLETE);
  answer_out.set_chunks(chunks);
  answer_out.set_classes(response.classes().substr(0, chunks));
  const auto spans = static_cast<int>(chunks * locations_per_chunk(response));
  for (int i = 0; i < spans; ++i) {
    answer_out.add_replicas(response.replicas(i));
    answer_out.add_pools(response.pools(i));
    answer_out.add_offsets(response.offsets(i));
    answer_out.add_sizes(response.sizes(i));
  }
  answer_out.set_miss_reason(chunks == response.chunks() ? response.miss_reason()
                                                         : v1::MISS_REASON_NOT_ACCESSIBLE);
  answer_operation(*operation, std::move(answer_out));
}

// Opens the spans of the lease and returns how many chunks, from the first, the ledger holds
// exactly as the server says. What comes after stays protected until the handle is released,
// unseen.
uint32_t AgentState::open_chunks(const Client& client, OperationNumber number,
                                 const v1::AcquireResponse& response) {
  const size_t per_chunk = locations_per_chunk(response);
  if (per_chunk == 0) return 0;
  std::vector<pool::SpanRequest> wanted;
  for (int i = 0; i < response.replicas_size(); ++i) {
    const PoolId pool(response.pools(i));
    const bool is_imported = client.imports.count(pool) > 0;
    wanted.push_back({ReplicaId(response.replicas(i)),
                      is_imported || may_map(client, pool) ? pool : PoolId(), response.offsets(i),
                      response.sizes(i), is_imported});
  }
  const auto codes = ledger.open_spans(LeaseId(response.lease()), client.session, number, wanted);
  if (!codes) {
    note(Note::Level::kWarning, "lease_refused",
         {{"lease", std::to_string(response.lease())}, {"reason", codes.error().message}});
    return 0;
  }
  for (size_t i = 0; i < codes->size(); ++i) {
    if ((*codes)[i] == pool::SpanCode::kOpen) continue;
    // A pool of another worker, not passed on to this client yet or let go again: an ordinary miss.
    if (!is_ours(PoolId(response.pools(static_cast<int>(i)))))
      return static_cast<uint32_t>(i / per_chunk);
    note(Note::Level::kWarning, "location_mismatch",
         {{"replica", to_text(wanted[i].replica)},
          {"offset", std::to_string(wanted[i].offset)},
          {"pool", std::to_string(response.pools(static_cast<int>(i)))},
          {"lease", std::to_string(response.lease())},
          {"reason", std::to_string(static_cast<int>((*codes)[i]))}});
    return static_cast<uint32_t>(i / per_chunk);
  }
  return response.chunks();
}

bool AgentState::is_ours(PoolId pool) const {
  return std::any_of(pools.begin(), pools.end(),
                     [&](const PoolSlot& slot) { return slot.id == pool; });
}

void AgentState::renew(CallId call, Client& client, const v1::WorkerRenewRequest& request) {
  Request wanted;
  wanted.kind = RequestKind::kRenew;
  wanted.client = client.session;
  wanted.call = call;
  wanted.give_up_at = now + options.probe_within;
  wanted.items = static_cast<size_t>(request.handles_size());
  if (const auto bound = check_batch("handles", wanted.items, limits); !bound) {
    return answer(call, tl::unexpected(bound.error()));
  }
  v1::RenewRequest& renew = *wanted.message.mutable_renew();
  renew.set_client_session(client.session.value());
  renew.set_ttl_ms(request.ttl_ms());
  for (size_t i = 0; i < wanted.items; ++i) {
    const LeaseId lease(request.handles(static_cast<int>(i)));
    const auto held = ledger.leases().find(lease);
    if (held == ledger.leases().end() || held->second.client != client.session) continue;
    if (client.revoked.count(lease)) continue;  // the server wants it back
    renew.add_leases(lease.value());
    wanted.indexes.push_back(i);
  }
  if (wanted.indexes.empty()) {
    v1::WorkerRenewResponse none;
    none.set_renewed(std::string(wanted.items, '\0'));
    return answer(call, Reply(std::move(none)));
  }
  if (!submit(std::move(wanted))) {
    answer(call, refuse(Reason::kUnavailable, "the server is out of reach; nothing was renewed"));
  }
}

void AgentState::renewed(const Request& request, const v1::RenewResponse& response) {
  v1::WorkerRenewResponse answer_out;
  std::string renewed(request.items, '\0');
  for (size_t i = 0; i < request.indexes.size() && i < response.renewed().size(); ++i) {
    renewed[request.indexes[i]] = response.renewed()[i];
  }
  answer_out.set_renewed(std::move(renewed));
  answer(request.call, Reply(std::move(answer_out)));
}

void AgentState::release(CallId call, Client& client, const v1::WorkerReleaseRequest& request) {
  v1::WorkerReleaseResponse response;
  std::string released;
  for (const uint64_t handle : request.handles()) {
    released.push_back(release_lease(client, LeaseId(handle)) ? '\1' : '\0');
  }
  response.set_released(std::move(released));
  answer(call, Reply(std::move(response)));
}

// Answered here and now; the server hears of it, again and again until it says so. Also of a lease
// that is not held here: a client that this worker took over from its dead predecessor gives back
// what it held there, and the server knows whose it is.
bool AgentState::release_lease(Client& client, LeaseId lease) {
  const auto held = ledger.leases().find(lease);
  if (held != ledger.leases().end()) {
    if (held->second.client != client.session) return false;
    give_back_lease(client, lease);
    return true;
  }
  if (lease.valid() && client.releasing.size() < limits.leases_max()) {
    give_back_lease(client, lease);
  }
  return false;
}

void AgentState::give_back_lease(Client& client, LeaseId lease) {
  const auto held = ledger.leases().find(lease);
  if (held != ledger.leases().end() && held->second.client == client.session) {
    ledger.close_spans(lease);
  }
  const bool is_awaited = client.revoked.erase(lease) != 0;
  client.releasing.insert(lease);
  if (is_awaited)
    client.release_by = now;
  else if (!client.release_by)
    client.release_by = now + options.release_within;
  owing.insert(client.session);
}

void AgentState::release_answered(Client& client, const std::vector<uint64_t>& leases) {
  for (const uint64_t lease : leases) client.releasing.erase(LeaseId(lease));
  owing.insert(client.session);
}

// The lease is over age. Like a cancel, it may overtake the answer that it concerns.
void AgentState::revoke(const v1::Revoke& revoke) {
  Client* client = find_client(SessionId(revoke.client_session()));
  if (!client) return;
  const LeaseId lease(revoke.lease());
  const auto held = ledger.leases().find(lease);
  if (held == ledger.leases().end()) {
    Operation* operation = find_unanswered(*client, revoke.operation());
    if (operation && operation->kind == OperationKind::kLoad)
      operation->poisoned = true;
    else if (client->is_taken_over && !client->releasing.count(lease))
      return push_revoke(*client, revoke);  // only the engine knows; asked again until it answers
    client->revoked.insert(lease);
    return give_back_lease(*client, lease);
  }
  if (held->second.client != client->session) return;
  client->revoked.insert(lease);
  push_revoke(*client, revoke);
}

void AgentState::push_revoke(const Client& client, const v1::Revoke& revoke) {
  v1::JoinResponse message;
  message.mutable_revoke()->set_operation(revoke.operation());
  message.mutable_revoke()->set_handle(revoke.lease());
  push(client, std::move(message));
}

// Loads that were answered as a miss while the server's answer was on its way: if they got a lease,
// it is given back.
void AgentState::resolve_loads(Client& client) {
  for (const OperationNumber number : client.unresolved) {
    Request wanted;
    wanted.kind = RequestKind::kResolve;
    wanted.client = client.session;
    wanted.operation = number;
    wanted.message.mutable_resolve()->set_client_session(client.session.value());
    wanted.message.mutable_resolve()->set_operation(number);
    keep(std::move(wanted));
  }
}

void AgentState::resolved(Client& client, OperationNumber number,
                          const v1::ResolveResponse& response) {
  client.unresolved.erase(number);
  const LeaseId lease(response.acquire().lease());
  if (lease.valid()) give_back_lease(client, lease);
  owing.insert(client.session);
}

}  // namespace berth::worker
