// Handlers of eviction: what an operator names, what a policy chose, and how policies are set. All
// of it retires; nothing here frees.
#include <unordered_set>

#include "common/text.h"
#include "server/directory/chunks.h"
#include "server/directory/context.h"

namespace berth {
namespace {

// Gathers what an operator names; it retires together at the end.
class Naming {
 public:
  explicit Naming(const Context& c) : c_(c) {}

  EvictCode decide(ReplicaId id) {
    const Replica* replica = c_.draft.find<Replica>(id);
    if (!replica || !can_retire(*replica) || named_.contains(id)) return EvictCode::kNothing;
    if (is_pinned(c_, id)) return EvictCode::kPinned;
    named_.insert(id);
    order_.push_back(id);
    return EvictCode::kRetired;
  }
  void retire() { retire_all(c_, order_, Why::kEvicted); }

 private:
  const Context& c_;
  std::unordered_set<ReplicaId> named_;
  std::vector<ReplicaId> order_;
};

}  // namespace

Result<Outcome> handle(const Context& c, const Evict& command) {
  if (Result<> count = check_count(c, "replicas", command.replicas.size()); !count)
    return tl::unexpected(count.error());
  PerItem answer;
  Naming naming(c);
  for (const ReplicaId id : command.replicas)
    answer.done.push_back(static_cast<uint8_t>(naming.decide(id)));
  naming.retire();
  return answer;
}

Result<Outcome> handle(const Context& c, const EvictChunks& command) {
  const Result<const Namespace*> ns = chunks_of(c, command.namespace_name, command.digests.size());
  if (!ns) return tl::unexpected(ns.error());
  PerItem answer;
  Naming naming(c);
  for (const Digest& digest : command.digests) {
    EvictCode code = EvictCode::kNothing;
    for (const ReplicaId id : copies_of(c, **ns, digest)) code = std::max(code, naming.decide(id));
    answer.done.push_back(static_cast<uint8_t>(code));
  }
  naming.retire();
  return answer;
}

Result<Outcome> handle(const Context& c, const MakeRoom& command) {
  PerItem answer;
  std::vector<ReplicaId> victims;
  for (const ReplicaId id : command.replicas) {
    const Replica* replica = c.draft.find<Replica>(id);
    const bool goes = replica && replica->pool == command.pool &&
                      replica->state == ReplicaState::kReady && c.draft.lease_count(id) == 0 &&
                      !is_pinned(c, id);
    answer.done.push_back(goes);
    if (goes) victims.push_back(id);
  }
  retire_all(c, victims, command.why);
  const Job* job = c.draft.find<Job>(command.job);
  if (!job) return answer;
  if (victims.empty()) {
    const bool is_reached = c.draft.pool_usage(job->pool).held_bytes() <= job->target_bytes;
    finish_job(c, *job, is_reached ? "" : "nothing more may be evicted");
  } else {
    Job counted = *job;
    counted.done += victims.size();
    c.draft.put(counted);
  }
  return answer;
}

// Ids rise, so everything of the namespace that exists now is below the next one. An id that a
// worker holds from another epoch of this store (a power cut took it) is lower still or is refused.
Result<Outcome> handle(const Context& c, const EvictNamespace& command) {
  const Namespace* known = c.draft.namespace_by_name(command.name);
  if (!known) return refuse(Reason::kUnknownNamespace, "no namespace \"" + command.name + "\"");
  Namespace evicted = *known;
  evicted.evicted_below = c.draft.take_replica_ids(1);
  const NamespaceId id = evicted.id;
  c.draft.emit({.kind = EventKind::kNamespaceEvicted,
                .count = static_cast<uint64_t>(c.draft.namespace_usage(id).replicas),
                .namespace_id = id});
  c.draft.put(std::move(evicted));
  // One that is under way starts over: it has a new bound.
  if (const Job* job = find_job(c, JobKind::kEvictNamespace, PoolId(), id)) {
    Job again = *job;
    again.pool = PoolId();
    again.cursor = 0;
    c.draft.put(again);
    c.draft.require_sync();
    return JobStarted{again.id};
  }
  return JobStarted{start_job(c, Job{.kind = JobKind::kEvictNamespace, .namespace_id = id})};
}

Result<Outcome> handle(const Context& c, const TrimPool& command) {
  const Pool* pool = c.draft.find<Pool>(command.pool);
  if (!pool || pool->state == PoolState::kGone)
    return refuse(Reason::kInvalidArgument, "no pool " + to_text(command.pool) + " in use");
  if (const Job* job = find_job(c, JobKind::kTrimPool, command.pool, NamespaceId())) {
    Job retargeted = *job;
    retargeted.target_bytes = command.target_bytes;
    c.draft.put(retargeted);
    return JobStarted{retargeted.id};
  }
  return JobStarted{start_job(
      c,
      Job{.kind = JobKind::kTrimPool, .pool = command.pool, .target_bytes = command.target_bytes})};
}

Result<Outcome> handle(const Context& c, const SetEviction& command) {
  c.draft.require_sync();
  if (command.reset) {
    c.draft.forget<EvictionSetting>({});
    c.draft.emit({.kind = EventKind::kEvictionSet, .reason = "reset to the configuration"});
    return Done{};
  }
  EvictionSetting s = eviction_in_force(c.draft, c.config);
  if (!command.keep_kind) s.kind = command.setting.kind;
  if (command.setting.high_permille != 0) s.high_permille = command.setting.high_permille;
  if (command.setting.low_permille != 0) s.low_permille = command.setting.low_permille;
  if (!s.is_valid())
    return refuse(Reason::kInvalidArgument,
                  "low watermark " + std::to_string(s.low_permille) + " per mille, high " +
                      std::to_string(s.high_permille) +
                      "; accepted: low from 1, below high, high up to 1000");
  c.draft.put(s);
  c.draft.emit({.kind = EventKind::kEvictionSet, .reason = std::string(policy::name_of(s.kind))});
  return Done{};
}

}  // namespace berth
