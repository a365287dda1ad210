// Handlers that give identity: the server's own start, workers and clients that attach.
#include <algorithm>

#include "common/text.h"
#include "server/directory/context.h"

namespace berth {

// The epoch rises before anything else is decided, so that no id of an earlier run can be made
// again.
Result<Outcome> handle(const Context& c, const Restart& command) {
  Meta meta = c.draft.meta();
  const bool is_new = !meta.store_id.valid();
  if (is_new || command.replace) meta.store_id = command.store_id;
  if (meta.epoch >= kEpochMax)
    return refuse(Reason::kLimitReached, "the store has used up its 2^24 epochs");
  ++meta.epoch;
  c.draft.put(meta);
  c.draft.require_sync();
  c.draft.emit({.kind = EventKind::kServerStarted, .count = meta.epoch});
  return Restarted{meta.store_id, meta.epoch, is_new};
}

void rise_above(const Context& c, Epoch seen, const StoreId& store_id) {
  Meta meta = c.draft.meta();
  if (store_id != meta.store_id || seen <= meta.epoch || seen >= kEpochMax) return;
  meta.epoch = seen + 1;
  c.draft.put(meta);
  c.draft.require_sync();
}

namespace {

// Sessions of an earlier boot of this node: every process of that boot is gone.
void fence_earlier_boots(const Context& c, const OpenWorker& command) {
  std::vector<SessionId> over;
  for (const auto& [id, session] : c.draft.base().sessions())
    if (session.node == command.node && session.boot_id != command.boot_id) over.push_back(id);
  for (const SessionId id : over) {
    const Session* session = c.draft.find<Session>(id);
    if (!session || session->ending) continue;
    if (session->role == Role::kWorker)
      fence_worker(c, *session, Proof::kBootOver, "another boot of the node");
    else
      end_client(c, *session, EventKind::kSessionFenced, "another boot of the node");
  }
  for (const auto& [id, entry] : c.draft.base().pools()) {
    const Pool* pool = c.draft.find<Pool>(id);
    if (!pool || pool->state != PoolState::kGone || pool->node != command.node ||
        pool->boot_id == command.boot_id)
      continue;
    Pool unmapped = *pool;
    forget_importers(unmapped);
    c.draft.put(std::move(unmapped));
    forget_pool_if_over(c, id);
  }
}

// The newest session that this request would fence; none: nobody.
SessionId newest_to_fence(const Context& c, const OpenWorker& command, SessionId holder) {
  SessionId newest = holder;
  const auto consider = [&](const Session& session) {
    if (session.node == command.node && session.boot_id != command.boot_id && !session.ending)
      newest = std::max(newest, session.id);
  };
  for (const auto& [id, installed] : c.draft.base().sessions())
    if (const Session* session = c.draft.find<Session>(id)) consider(*session);
  c.draft.each_staged<Session>(consider);
  return newest;
}

WorkerOpened welcome(const Context& c, const Session& worker) {
  WorkerOpened opened{.session = worker.id,
                      .token = worker.token,
                      .incarnation = worker.incarnation,
                      .version = worker.version};
  const auto consider = [&](const Session* s) {
    if (s && s->role == Role::kClient && s->worker_name == worker.name && s->node == worker.node &&
        !s->worker.valid() && !s->ending)
      for (const std::string& life_name : s->life_names)
        opened.predecessor_clients.push_back({s->id, s->name, life_name});
  };
  for (const SessionId id : c.draft.clients_of(SessionId())) consider(c.draft.find<Session>(id));
  for (const auto& [id, entry] : c.draft.base().pools()) {
    const Pool* pool = c.draft.find<Pool>(id);
    if (pool && pool->state == PoolState::kGone && pool->owner_name == worker.name &&
        pool->node == worker.node)
      opened.orphan_pools.push_back(
          {id, pool->spec.name, pool->spec.backing_bytes, pool->importers});
  }
  return opened;
}

Result<> check_name(const Context& c, const OpenWorker& command, SessionId holder_id) {
  const Session* holder = c.draft.find<Session>(holder_id);
  if (holder->node != command.node)
    return refuse(Reason::kNameInUse, "worker name \"" + command.name + "\" is held by session " +
                                          to_text(holder_id) + " on node " + holder->node +
                                          "; if that host is gone: berthctl fence " +
                                          to_text(holder_id));
  if (!command.life_lock_held)
    return refuse(Reason::kNameInUse, "worker name \"" + command.name + "\" is held by session " +
                                          to_text(holder_id) +
                                          " of this node, and its life lock was not taken");
  return {};
}

}  // namespace

Result<Outcome> handle(const Context& c, const OpenWorker& command) {
  const SessionId holder = c.draft.worker_by_name(command.name);
  if (holder.valid()) {
    const Session* session = c.draft.find<Session>(holder);
    if (session->request_token == command.request_token) return welcome(c, *session);  // a retry
    if (session->node != command.node || session->boot_id == command.boot_id)
      if (Result<> free = check_name(c, command, holder); !free)
        return tl::unexpected(free.error());
  }
  // The request may have been under way for so long that its sender is dead itself, and whom it
  // would fence is its live successor. A proof is good against sessions that its sender knew of.
  const SessionId newest = newest_to_fence(c, command, holder);
  if (newest > command.proven_at) return WorkerOpened{.prove_again = newest};
  if (c.draft.base().sessions().size() >= c.config.sessions_max)
    return refuse(
        Reason::kLimitReached,
        "limits.sessions_max = " + std::to_string(c.config.sessions_max) + " sessions exist");

  fence_earlier_boots(c, command);
  if (holder.valid())
    if (const Session* predecessor = c.draft.find<Session>(holder))
      fence_worker(c, *predecessor, Proof::kProcessDead, "life lock taken by its successor");

  Session worker;
  worker.id = c.draft.take_id<SessionId>();
  worker.role = Role::kWorker;
  worker.token = command.token;
  worker.request_token = command.request_token;
  worker.name = command.name;
  worker.node = command.node;
  worker.boot_id = command.boot_id;
  worker.access_domains = command.access_domains;
  worker.write_order = command.write_order;
  worker.version = command.version;
  worker.host_memory_bytes = command.host_memory_bytes;
  c.draft.put(worker);
  c.draft.put(Presence{.session = worker.id, .leases_stated = true});
  c.draft.require_sync();
  c.draft.emit(
      {.kind = EventKind::kSessionOpened, .session = worker.id, .reason = "worker " + worker.name});
  rise_above(c, command.epoch_seen, command.store_id_seen);
  return welcome(c, worker);
}

namespace {

constexpr size_t kLifeNamesMax = 8;  // of one client: each is tested until it is free

Result<Outcome> resume(const Context& c, const Session& worker, const OpenClient& command) {
  const Session* known = c.draft.find<Session>(command.resume_session);
  if (!known || known->role != Role::kClient || known->ending)
    return refuse(Reason::kUnknownSession,
                  "no client session " + to_text(command.resume_session) + " to resume");
  if (known->token != command.resume_token)
    return refuse(Reason::kWrongToken,
                  "resume_token is not that of session " + to_text(command.resume_session));
  if (known->worker_name != worker.name || known->node != worker.node)
    return refuse(Reason::kPermissionDenied,
                  "session " + to_text(known->id) + " joined through worker " + known->worker_name);
  if (known->life_names.size() >= kLifeNamesMax)
    return refuse(Reason::kUnknownSession, "session " + to_text(known->id) + " was resumed " +
                                               std::to_string(kLifeNamesMax - 1) +
                                               " times, the most; join without it");
  Session resumed = *known;
  resumed.worker = worker.id;
  resumed.life_names.push_back(command.life_name);
  resumed.request_token = command.request_token;
  resumed.version = command.version;
  c.draft.put(resumed);
  c.draft.require_sync();
  c.draft.emit({.kind = EventKind::kSessionResumed,
                .session = resumed.id,
                .reason = "client " + resumed.name});
  return ClientOpened{resumed.id, resumed.token, resumed.operation_low_water, resumed.version};
}

// A private pool that names no engine belongs to the first one that joins.
void claim_private_pools(const Context& c, const Session& worker, const std::string& engine) {
  for (const PoolId id : c.draft.pools_of(worker.id)) {
    const Pool* pool = c.draft.find<Pool>(id);
    if (pool->spec.scope != Scope::kProcess || !pool->spec.engine.empty()) continue;
    Pool claimed = *pool;
    claimed.spec.engine = engine;
    c.draft.put(std::move(claimed));
  }
}

}  // namespace

Result<Outcome> handle(const Context& c, const OpenClient& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  for (const SessionId id : c.draft.clients_of(command.caller.session)) {
    const Session* known = c.draft.find<Session>(id);
    if (known->request_token == command.request_token && !known->ending)  // a retry
      return ClientOpened{known->id, known->token, known->operation_low_water, known->version};
  }
  if (command.resume_session.valid()) {
    Result<Outcome> resumed = resume(c, **worker, command);
    if (resumed) claim_private_pools(c, **worker, command.engine_id);
    return resumed;
  }
  if (c.draft.base().sessions().size() >= c.config.sessions_max)
    return refuse(
        Reason::kLimitReached,
        "limits.sessions_max = " + std::to_string(c.config.sessions_max) + " sessions exist");

  Session client;
  client.id = c.draft.take_id<SessionId>();
  client.role = Role::kClient;
  client.token = command.token;
  client.request_token = command.request_token;
  client.name = command.engine_id;
  client.node = (*worker)->node;
  client.boot_id = (*worker)->boot_id;
  client.worker = (*worker)->id;
  client.worker_name = (*worker)->name;
  client.life_names = {command.life_name};
  client.version = command.version;
  c.draft.put(client);
  claim_private_pools(c, **worker, command.engine_id);
  c.draft.require_sync();
  c.draft.emit(
      {.kind = EventKind::kSessionOpened, .session = client.id, .reason = "client " + client.name});
  return ClientOpened{client.id, client.token, 0, client.version};
}

}  // namespace berth
