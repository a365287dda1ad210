// Handlers of HOST pools that other workers of the node read: passed by their owner, imported by
// word of the receiver, over once the owner proved the life lock free (docs/adr/0011).
#include <algorithm>

#include "common/text.h"
#include "server/directory/context.h"

namespace berth {

bool knows_readers(const Context& c, const Pool& pool) {
  return std::all_of(pool.exports.begin(), pool.exports.end(), [&](const PoolExport& e) {
    if (!e.imported) return !e.unsure;
    const Presence* presence = c.draft.find<Presence>(e.importer);
    return presence && presence->leases_stated;
  });
}

void ask_to_drop_imports(const Context& c, const Pool& pool) {
  for (const PoolExport& e : pool.exports)
    if (e.importer.valid())
      c.draft.ask({.worker = e.importer, .kind = Ask::Kind::kDropImport, .pool = pool.id});
}

void forget_importers(Pool& pool) {
  pool.importers.clear();
  pool.exports.clear();
}

void end_imports_of(const Context& c, SessionId worker) {
  const Presence* presence = c.draft.find<Presence>(worker);
  const bool leases_stated = presence && presence->leases_stated;
  const auto end_in = [&](const Pool& pool) {
    Pool changed = pool;
    for (PoolExport& e : changed.exports) {
      if (e.importer != worker) continue;
      e.unsure = e.imported && !leases_stated;
      e.imported = false;
      e.importer = SessionId();
    }
    if (changed.exports != pool.exports) c.draft.put(std::move(changed));
  };
  for (const auto& [id, entry] : c.draft.base().pools())
    if (const Pool* pool = c.draft.find<Pool>(id); pool && !pool->exports.empty()) end_in(*pool);
  std::vector<PoolId> staged;  // registered and exported in this very batch
  c.draft.each_staged<Pool>([&](const Pool& pool) {
    if (!pool.exports.empty() && !c.draft.base().find_pool(pool.id)) staged.push_back(pool.id);
  });
  for (const PoolId id : staged) end_in(*c.draft.find<Pool>(id));
}

namespace {

uint32_t imports_of(const Context& c, SessionId worker) {
  uint32_t count = 0;
  for (const auto& [id, entry] : c.draft.base().pools())
    if (const Pool* pool = c.draft.find<Pool>(id))
      for (const PoolExport& e : pool->exports) count += e.importer == worker;
  return count;
}

Result<> check_export(const Context& c, const ExportPool& command, const Pool& pool) {
  const Session* importer = c.draft.find<Session>(command.importer);
  if (!importer || importer->role != Role::kWorker || importer->node != pool.node ||
      importer->boot_id != pool.boot_id || command.importer == pool.owner)
    return refuse(Reason::kUnknownSession, "importer = " + to_text(command.importer) +
                                               ": no other worker of node " + pool.node);
  if (pool.exports.size() >= c.config.importers_max)
    return refuse(Reason::kLimitReached, "pool " + to_text(pool.id) +
                                             " has limits.importers_max = " +
                                             std::to_string(c.config.importers_max) + " exports");
  if (imports_of(c, command.importer) >= c.config.imports_max)
    return refuse(Reason::kLimitReached, "worker " + importer->name + " has limits.imports_max = " +
                                             std::to_string(c.config.imports_max) + " imports");
  return {};
}

tl::unexpected<Error> no_such_pool(PoolId pool) {
  return refuse(Reason::kUnknownPool, "no pool " + to_text(pool) + " in use");
}

auto by_life_name(const std::string& name) {
  return [&name](const PoolExport& e) { return e.life_name == name; };
}

}  // namespace

Result<Outcome> handle(const Context& c, const ExportPool& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Pool* pool = c.draft.find<Pool>(command.pool);
  if (!pool) return no_such_pool(command.pool);
  if (pool->owner != command.caller.session)
    return refuse(Reason::kPermissionDenied,
                  "pool " + to_text(command.pool) + " does not belong to this session");
  if (std::any_of(pool->exports.begin(), pool->exports.end(), by_life_name(command.life_name)))
    return Done{};  // a retry
  if (pool->state != PoolState::kOpen) return no_such_pool(command.pool);
  if (pool->spec.scope != Scope::kHost)
    return refuse(Reason::kInvalidArgument,
                  "pool " + to_text(command.pool) + " is not of scope host: it is not shared");
  if (Result<> may = check_export(c, command, *pool); !may) return tl::unexpected(may.error());
  Pool exported = *pool;
  exported.exports.push_back({.importer = command.importer,
                              .worker = c.draft.find<Session>(command.importer)->name,
                              .life_name = command.life_name});
  c.draft.put(std::move(exported));
  c.draft.require_sync();
  return Done{};
}

Result<Outcome> handle(const Context& c, const ImportPool& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Pool* pool = c.draft.find<Pool>(command.pool);
  if (!pool || pool->state != PoolState::kOpen) return no_such_pool(command.pool);
  Pool imported = *pool;
  const auto found = std::find_if(imported.exports.begin(), imported.exports.end(),
                                  by_life_name(command.life_name));
  if (found == imported.exports.end() || found->importer != command.caller.session)
    return refuse(Reason::kUnknownPool, "pool " + to_text(command.pool) +
                                            " is not exported to this session under life lock " +
                                            command.life_name);
  if (found->imported) return Done{};  // said before
  found->imported = true;
  c.draft.emit({.kind = EventKind::kPoolImported,
                .session = command.caller.session,
                .pool = command.pool,
                .reason = found->worker});
  c.draft.put(std::move(imported));
  c.draft.require_sync();
  return Done{};
}

Result<Outcome> handle(const Context& c, const EndExports& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Pool* pool = c.draft.find<Pool>(command.pool);
  if (!pool) return Done{};  // over, and with it every export
  if (pool->owner != command.caller.session)
    return refuse(Reason::kPermissionDenied,
                  "pool " + to_text(command.pool) + " does not belong to this session");
  Pool changed = *pool;
  for (const std::string& life_name : command.life_names) {
    const auto found =
        std::find_if(changed.exports.begin(), changed.exports.end(), by_life_name(life_name));
    if (found == changed.exports.end()) continue;  // ended before
    c.draft.emit({.kind = EventKind::kExportEnded,
                  .session = found->importer,
                  .pool = command.pool,
                  .reason = found->worker});
    changed.exports.erase(found);
  }
  if (changed.exports == pool->exports) return Done{};
  c.draft.put(std::move(changed));
  c.draft.require_sync();
  return Done{};
}

}  // namespace berth
