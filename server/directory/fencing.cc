// Handlers that take identity away, on proof or on the holder's own word. Nothing here is reached
// by a timer.
#include <algorithm>

#include "common/text.h"
#include "server/directory/context.h"

namespace berth {

void end_client(const Context& c, const Session& client, EventKind why, std::string reason) {
  Session ending = client;
  ending.ending = true;
  c.draft.emit({.kind = why, .session = client.id, .reason = std::move(reason)});
  if (client.worker.valid())
    c.draft.ask({.worker = client.worker, .kind = Ask::Kind::kClientFenced, .client = client.id});
  start_job(c, {.kind = JobKind::kEndSession, .session = client.id});
  c.draft.put(std::move(ending));
}

void fence_worker(const Context& c, const Session& worker, Proof proof, std::string reason) {
  const Session dead = worker;  // the record is forgotten below
  std::vector<std::string> importers;
  for (const SessionId id : c.draft.clients_of(dead.id)) {
    Session orphan = *c.draft.find<Session>(id);
    if (proof == Proof::kProcessDead)
      importers.insert(importers.end(), orphan.life_names.begin(), orphan.life_names.end());
    orphan.worker = SessionId();
    c.draft.put(std::move(orphan));
  }
  end_imports_of(c, dead.id);
  for (const PoolId id : c.draft.pools_of(dead.id)) {
    Pool gone = *c.draft.find<Pool>(id);
    gone.state = PoolState::kGone;
    gone.owner = SessionId();
    gone.importers = importers;
    if (proof == Proof::kBootOver) forget_importers(gone);
    for (const PoolExport& e : gone.exports) gone.importers.push_back(e.life_name);
    std::sort(gone.importers.begin(), gone.importers.end());
    ask_to_drop_imports(c, gone);
    c.draft.put(std::move(gone));
    c.draft.emit({.kind = EventKind::kPoolGone, .session = dead.id, .pool = id, .reason = reason});
    start_job(c, {.kind = JobKind::kDropPool, .pool = id});
  }
  c.draft.ask({.worker = dead.id, .kind = Ask::Kind::kWorkerFenced});
  c.draft.forget<Presence>(dead.id);
  c.draft.forget<Session>(dead.id);
  c.draft.require_sync();
  c.draft.emit(
      {.kind = EventKind::kSessionFenced, .session = dead.id, .reason = std::move(reason)});
}

void forget_pool_if_over(const Context& c, PoolId id) {
  const Pool* pool = c.draft.find<Pool>(id);
  if (!pool || !pool->importers.empty() || c.draft.pool_usage(id).replicas() > 0) return;
  if (pool->state == PoolState::kOpen || pool->state == PoolState::kDraining) return;
  c.draft.emit({.kind = EventKind::kPoolClosed, .session = pool->owner, .pool = id});
  c.draft.forget<Pool>(id);
  c.draft.require_sync();
}

Result<Outcome> handle(const Context& c, const CloseSession& command) {
  const Result<const Session*> worker = require_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  if (!command.client.valid() || command.client == command.caller.session) {
    // A worker that leaves says that its memory is unmapped on its side; clients that still map it
    // are importers.
    fence_worker(c, **worker, Proof::kProcessDead, "closed by the worker");
    return Done{};
  }
  const Session* client = c.draft.find<Session>(command.client);
  if (!client || client->ending) return Done{};  // closed before: the same answer
  if (client->worker != command.caller.session)
    return refuse(Reason::kPermissionDenied, "client session " + to_text(command.client) +
                                                 " is not attached through this worker");
  end_client(c, *client, EventKind::kSessionEnding, "closed by the client");
  return Done{};
}

Result<Outcome> handle(const Context& c, const FenceClient& command) {
  const Result<const Session*> worker = require_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Session* client = c.draft.find<Session>(command.client);
  if (!client || client->ending) return Done{};  // fenced before: the same answer
  const bool is_own = client->worker == command.caller.session;
  const bool is_predecessors = !client->worker.valid() && client->worker_name == (*worker)->name &&
                               client->node == (*worker)->node;
  if (client->role != Role::kClient || (!is_own && !is_predecessors))
    return refuse(Reason::kPermissionDenied, "session " + to_text(command.client) +
                                                 " is not a client of worker " + (*worker)->name);
  end_client(c, *client, EventKind::kSessionFenced, "proven dead by its worker");
  return Done{};
}

namespace {

Fenced fence_node(const Context& c, const FenceByOperator& command) {
  Fenced fenced;
  std::vector<SessionId> of_node;
  for (const auto& [id, session] : c.draft.base().sessions())
    if (session.node == command.node) of_node.push_back(id);
  for (const SessionId id : of_node) {
    const Session* session = c.draft.find<Session>(id);
    if (!session || session->ending) continue;
    fenced.sessions.push_back(id);
    if (session->role == Role::kWorker)
      fence_worker(c, *session, Proof::kBootOver, command.reason);
    else
      end_client(c, *session, EventKind::kSessionFenced, command.reason);
  }
  // The operator says that every process of the node is dead, so memory that dead workers left is
  // gone too.
  for (const auto& [id, entry] : c.draft.base().pools()) {
    const Pool* pool = c.draft.find<Pool>(id);
    if (!pool || pool->state != PoolState::kGone || pool->node != command.node) continue;
    Pool unmapped = *pool;
    forget_importers(unmapped);
    c.draft.put(std::move(unmapped));
    forget_pool_if_over(c, id);
  }
  return fenced;
}

}  // namespace

Result<Outcome> handle(const Context& c, const FenceByOperator& command) {
  if (command.reason.empty())
    return refuse(Reason::kInvalidArgument, "reason is empty: a fence is recorded with its reason");
  if (command.session.valid() == !command.node.empty())
    return refuse(Reason::kInvalidArgument, "name either a session or a node");
  if (!command.node.empty()) return fence_node(c, command);
  const Session* session = c.draft.find<Session>(command.session);
  if (!session) return refuse(Reason::kUnknownSession, "no session " + to_text(command.session));
  if (session->ending) return Fenced{{command.session}};
  if (session->role == Role::kWorker)
    fence_worker(c, *session, Proof::kProcessDead, command.reason);
  else
    end_client(c, *session, EventKind::kSessionFenced, command.reason);
  return Fenced{{command.session}};
}

Result<Outcome> handle(const Context& c, const ReleaseOrphans& command) {
  const Result<const Session*> worker = require_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  for (const PoolId id : command.pools) {
    const Pool* pool = c.draft.find<Pool>(id);
    if (!pool) continue;  // released before
    if (pool->state != PoolState::kGone || pool->owner_name != (*worker)->name ||
        pool->node != (*worker)->node)
      return refuse(
          Reason::kPermissionDenied,
          "pool " + to_text(id) + " was not left by a predecessor of worker " + (*worker)->name);
    Pool unmapped = *pool;
    forget_importers(unmapped);
    c.draft.put(std::move(unmapped));
    c.draft.require_sync();
    forget_pool_if_over(c, id);
  }
  return Done{};
}

}  // namespace berth
