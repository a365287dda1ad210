// Handlers of pools: registered by their owner, charged to the host's budget, closed by draining.
#include <map>

#include "common/text.h"
#include "common/units.h"
#include "server/directory/context.h"

namespace berth {

uint64_t backing_of_node(const Context& c, const std::string& node) {
  uint64_t sum = 0;
  for (const auto& [id, entry] : c.draft.base().pools())
    if (const Pool* pool = c.draft.find<Pool>(id); pool && pool->node == node)
      sum += pool->spec.backing_bytes;
  c.draft.each_staged<Pool>([&](const Pool& pool) {
    if (pool.node == node && !c.draft.base().find_pool(pool.id)) sum += pool.spec.backing_bytes;
  });
  return sum;
}

namespace {

uint64_t host_budget(const Context& c, const Session& worker) {
  if (const auto it = c.config.host_budget_by_node.find(worker.node);
      it != c.config.host_budget_by_node.end())
    return it->second;
  return c.config.host_budget_bytes ? c.config.host_budget_bytes : worker.host_memory_bytes;
}

bool same_figures(const PoolSpec& have, const PoolSpec& want) {
  PoolSpec a = have;
  PoolSpec b = want;
  a.pinned_bytes = b.pinned_bytes = 0;     // measured, changes
  if (b.engine.empty()) a.engine.clear();  // claimed since
  return a == b;
}

}  // namespace

Result<Outcome> handle(const Context& c, const RegisterPool& command) {
  const Result<const Session*> worker = require_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  PoolSpec spec = command.spec;
  if (spec.budget_bytes == 0) spec.budget_bytes = spec.capacity_bytes;
  for (const PoolId id : c.draft.pools_of(command.caller.session)) {
    const Pool* known = c.draft.find<Pool>(id);
    if (known->spec.name != spec.name) continue;
    if (same_figures(known->spec, spec)) return PoolRegistered{id};  // a retry
    return refuse(Reason::kIdInUse,
                  "pool \"" + spec.name + "\" of this worker is registered with other figures");
  }
  if (spec.scope == Scope::kDomain)
    return refuse(Reason::kInvalidArgument,
                  "pool \"" + spec.name +
                      "\": scope domain is not served by this version; accepted: process, host");
  if (c.draft.base().pools().size() >= c.config.pools_max)
    return refuse(Reason::kLimitReached,
                  "limits.pools_max = " + std::to_string(c.config.pools_max) + " pools exist");
  const uint64_t budget = host_budget(c, **worker);
  const uint64_t used = backing_of_node(c, (*worker)->node);
  if (spec.medium != Medium::kSsd && budget > 0 && used + spec.backing_bytes > budget)
    return refuse(Reason::kBudgetExceeded,
                  "pool \"" + spec.name + "\" takes " + format_size(spec.backing_bytes) +
                      ", node " + (*worker)->node + " has " + format_size(used) +
                      " of its budget of " + format_size(budget) +
                      " in use; lower the pool's capacity or raise budget.host");
  Pool pool;
  pool.id = c.draft.take_id<PoolId>();
  pool.spec = std::move(spec);
  pool.owner = command.caller.session;
  pool.owner_name = (*worker)->name;
  pool.node = (*worker)->node;
  pool.boot_id = (*worker)->boot_id;
  const PoolId id = pool.id;
  c.draft.emit({.kind = EventKind::kPoolRegistered,
                .session = pool.owner,
                .pool = id,
                .count = pool.spec.capacity_bytes,
                .reason = pool.spec.name});
  c.draft.put(std::move(pool));
  c.draft.require_sync();
  return PoolRegistered{id};
}

namespace {

std::string importers_text(const Pool& pool) {
  std::map<std::string, int> by_worker;
  for (const PoolExport& e : pool.exports) ++by_worker[e.worker];
  std::string text;
  for (const auto& [worker, count] : by_worker)
    text += (text.empty() ? "" : ", ") + worker + (count > 1 ? " x" + std::to_string(count) : "");
  return text;
}

}  // namespace

Result<Outcome> handle(const Context& c, const ClosePool& command) {
  const Result<const Session*> worker = require_present_worker(c, command.caller);
  if (!worker) return tl::unexpected(worker.error());
  const Pool* pool = c.draft.find<Pool>(command.pool);
  if (!pool) return PoolClosing{0};  // closed before
  if (pool->owner != command.caller.session)
    return refuse(Reason::kPermissionDenied,
                  "pool " + to_text(command.pool) + " does not belong to this session");
  if (!pool->exports.empty())
    return refuse(Reason::kStillMapped, "pool " + to_text(pool->id) + " is exported to " +
                                            importers_text(*pool) +
                                            "; drain it, and close it when they have let go");
  if (pool->state != PoolState::kClosing) {
    Pool closing = *pool;
    closing.state = PoolState::kClosing;
    c.draft.emit({.kind = EventKind::kPoolClosing, .session = closing.owner, .pool = closing.id});
    c.draft.put(std::move(closing));
    start_job(c, {.kind = JobKind::kClosePool, .pool = command.pool});
  }
  return PoolClosing{static_cast<uint64_t>(c.draft.pool_usage(command.pool).replicas())};
}

}  // namespace berth
