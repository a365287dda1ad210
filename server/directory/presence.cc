// Handlers of who is there: soft state, never on disk, never a reason to free anything.
#include "server/directory/context.h"

namespace berth {

Result<Outcome> handle(const Context& c, const LinkUp& command) {
  const Result<const Session*> worker = require_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Presence* presence = c.draft.find<Presence>(command.caller.session);
  if (!presence || presence->attachment == Attachment::kDetached)
    return refuse(Reason::kReattaching,
                  "a Link opens after the ledger was reconciled; call Reattach first");
  if (presence->attachment == Attachment::kReattaching &&
      presence->cursor_pool != kEveryPoolSearched)
    return refuse(Reason::kReattaching, "the re-attach of this incarnation is not finished");
  const std::vector<SessionId> unknown = presence->unknown_clients;
  const bool leases_stated = presence->leases_stated;
  c.draft.put(Presence{.session = command.caller.session,
                       .attachment = Attachment::kAttached,
                       .heartbeat_known = true,
                       .heartbeat = c.now,
                       .leases_stated = leases_stated});
  for (const SessionId client : unknown)
    c.draft.ask(
        {.worker = command.caller.session, .kind = Ask::Kind::kClientFenced, .client = client});
  c.draft.emit({.kind = EventKind::kSessionAttached,
                .session = command.caller.session,
                .count = command.caller.incarnation});
  return Done{};
}

Result<Outcome> handle(const Context& c, const LinkDown& command) {
  const Session* worker = c.draft.find<Session>(command.session);
  if (!worker || worker->incarnation != command.incarnation)
    return Done{};  // a newer Link took over
  const Presence* presence = c.draft.find<Presence>(command.session);
  c.draft.put(
      Presence{.session = command.session, .leases_stated = presence && presence->leases_stated});
  c.draft.emit({.kind = EventKind::kSessionDetached, .session = command.session});
  return Done{};
}

namespace {

// Answers up to the mark are never asked for again.
void raise_low_water(const Context& c, const Session& client, OperationNumber mark) {
  if (mark <= client.operation_low_water) return;
  uint32_t forgotten = 0;
  OperationNumber reached = mark;
  const auto& operations = c.draft.base().operations();
  for (auto it = operations.lower_bound({client.id, 0});
       it != operations.end() && it->first.session == client.id; ++it) {
    if (it->first.number > mark) break;
    if (++forgotten > c.config.slice_records) {  // the next heartbeat goes on
      reached = it->first.number - 1;
      break;
    }
    c.draft.forget<Operation>(it->first);
  }
  if (reached <= client.operation_low_water) return;
  Session raised = client;
  raised.operation_low_water = reached;
  c.draft.put(std::move(raised));
}

}  // namespace

Result<Outcome> handle(const Context& c, const Heartbeat& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  Presence presence = *c.draft.find<Presence>(command.caller.session);
  if (presence.silent)
    c.draft.emit({.kind = EventKind::kSessionHeard, .session = command.caller.session});
  presence.silent = false;
  presence.heartbeat_known = true;
  presence.heartbeat = c.now;
  c.draft.put(presence);
  for (const PoolReport& report : command.pools) {
    const Pool* pool = c.draft.find<Pool>(report.pool);
    if (!pool || pool->owner != command.caller.session) continue;
    c.draft.put(report);
    if (pool->spec.pinned_bytes == report.pinned_bytes) continue;
    Pool measured = *pool;
    measured.spec.pinned_bytes = report.pinned_bytes;
    c.draft.put(std::move(measured));
  }
  for (const auto& [client_id, mark] : command.low_water) {
    const Session* client = c.draft.find<Session>(client_id);
    if (client && client->worker == command.caller.session && !client->ending)
      raise_low_water(c, *client, mark);
  }
  return Done{};
}

}  // namespace berth
