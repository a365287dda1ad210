// The evictor's other half: which pool or namespace makes room next, and what leaves it. Feeding is
// in evictor.cc.
#include <algorithm>

#include "server/policy/evictor.h"

namespace berth::policy {

std::optional<MakeRoom> Evictor::next(const Directory& directory, Time now) {
  move_some(directory);
  wake_rested(now);
  if (auto slice = for_trim(directory, now)) return slice;
  if (auto slice = for_pool(directory, now)) return slice;
  return for_namespace(directory, now);
}

void Evictor::wake_rested(Time now) {
  std::erase_if(resting_, [&](const auto& resting) {
    if (resting.second > now) return false;
    const auto& [pool, ns] = resting.first;
    if (pool.valid()) pools_due_.insert(pool);
    if (ns.valid()) namespaces_due_.insert(ns);
    return true;
  });
}

void Evictor::rest(PoolId pool, NamespaceId ns, Time now) {
  ++stats_.nothing_evictable;
  resting_[{pool, ns}] = now + config_.retry;
}

std::optional<MakeRoom> Evictor::for_trim(const Directory& directory, Time now) {
  while (!trims_.empty()) {
    const JobId id = *trims_.begin();
    const Job* job = directory.find<Job>(id);
    const PoolEntry* entry = job ? directory.find_pool(job->pool) : nullptr;
    if (!entry) {
      trims_.erase(id);  // the job's own slice ends it
      continue;
    }
    // Ended here, before stores lift the pool above its target again.
    if (entry->usage.held_bytes() <= job->target_bytes)
      return MakeRoom{job->pool, {}, Why::kPoolTrimmed, id};
    std::vector<ReplicaId> victims = pick(directory, job->pool, NamespaceId(),
                                          entry->usage.held_bytes() - job->target_bytes, now);
    if (victims.empty() && !went_round(directory, job->pool, NamespaceId())) return std::nullopt;
    return MakeRoom{job->pool, std::move(victims), Why::kPoolTrimmed, id};
  }
  return std::nullopt;
}

// What may be held at most, or nothing when there is no reason to make room.
std::optional<uint64_t> Evictor::goal_of(const Directory& directory, const PoolEntry& entry) {
  const PoolId id = entry.pool.id;
  const uint64_t budget = entry.pool.limit_bytes();
  const uint64_t held = entry.usage.held_bytes();
  const EvictionSetting& set = setting(directory);
  const auto wanted = wanted_bytes_.find(id);
  std::optional<uint64_t> goal;
  if (held > set.high_of(budget) || making_room_.contains(id)) goal = set.low_of(budget);
  if (wanted != wanted_bytes_.end() && held + wanted->second > budget)
    goal = std::min(goal.value_or(UINT64_MAX), budget - wanted->second);
  if (goal && held > *goal) return goal;
  making_room_.erase(id);
  wanted_bytes_.erase(id);
  return std::nullopt;
}

std::optional<MakeRoom> Evictor::for_pool(const Directory& directory, Time now) {
  while (!pools_due_.empty()) {
    // In turn, so that one busy pool does not keep others waiting.
    auto it = pools_due_.upper_bound(last_pool_);
    if (it == pools_due_.end()) it = pools_due_.begin();
    const PoolId id = last_pool_ = *it;
    const PoolEntry* entry = directory.find_pool(id);
    // Without its owner nothing is stored there, and nobody would acknowledge.
    const bool is_served = entry && directory.is_present(entry->pool.owner);
    const std::optional<uint64_t> goal =
        is_served ? goal_of(directory, *entry) : std::optional<uint64_t>();
    if (!goal) {
      if (!is_served) making_room_.erase(id);  // who comes back is judged anew
      pools_due_.erase(it);
      continue;
    }
    making_room_.insert(id);
    std::vector<ReplicaId> victims =
        pick(directory, id, NamespaceId(), entry->usage.held_bytes() - *goal, now);
    if (!victims.empty()) return MakeRoom{id, std::move(victims), Why::kMadeRoom, JobId()};
    if (!went_round(directory, id, NamespaceId())) return std::nullopt;  // the next call goes on
    pools_due_.erase(it);
    rest(id, NamespaceId(), now);
  }
  return std::nullopt;
}

std::optional<MakeRoom> Evictor::for_namespace(const Directory& directory, Time now) {
  while (!namespaces_due_.empty()) {
    const NamespaceId id = *namespaces_due_.begin();
    const Namespace* ns = directory.find<Namespace>(id);
    const EvictionSetting& set = setting(directory);
    const uint64_t held = directory.namespace_usage(id).held_bytes();
    const bool is_over = ns && ns->quota_bytes > 0 &&
                         (held > set.high_of(ns->quota_bytes) ||
                          (making_room_in_.contains(id) && held > set.low_of(ns->quota_bytes)));
    if (!is_over) {
      making_room_in_.erase(id);
      namespaces_due_.erase(id);
      continue;
    }
    making_room_in_.insert(id);
    bool is_over_everywhere = true;
    if (auto slice =
            pick_in(directory, id, held - set.low_of(ns->quota_bytes), now, is_over_everywhere))
      return slice;
    if (!is_over_everywhere) return std::nullopt;
    namespaces_due_.erase(id);
    rest(PoolId(), id, now);
  }
  return std::nullopt;
}

// Where the namespace has most.
std::optional<MakeRoom> Evictor::pick_in(const Directory& directory, NamespaceId ns,
                                         uint64_t need_bytes, Time now, bool& went_round_all) {
  std::vector<std::pair<size_t, PoolId>> holding;
  for (const auto& [pool, groups] : pools_) {
    size_t held = 0;
    size_t common = 0;
    for (const Group& group : groups) {
      if (!group.policy) continue;
      if (group.namespace_id == ns) held += group.policy->size();
      if (!group.namespace_id.valid()) common += group.policy->size();
    }
    // What was stored before the namespace had a quota lies among the others.
    if (held + common > 0) holding.push_back({held, pool});
  }
  std::sort(holding.rbegin(), holding.rend());
  for (const auto& [held, pool] : holding) {
    const PoolEntry* entry = directory.find_pool(pool);
    if (!entry || !directory.is_present(entry->pool.owner)) continue;
    std::vector<ReplicaId> victims = pick(directory, pool, ns, need_bytes, now);
    if (!victims.empty())
      return MakeRoom{pool, std::move(victims), Why::kMadeRoomInNamespace, JobId()};
    if (went_round(directory, pool, ns)) continue;
    went_round_all = false;
    return std::nullopt;
  }
  return std::nullopt;
}

bool Evictor::went_round(const Directory& directory, PoolId pool, NamespaceId ns) {
  const auto passed = passed_.find({pool, ns});
  const PoolEntry* entry = directory.find_pool(pool);
  if (passed == passed_.end()) return true;  // nothing was even looked at
  if (entry && passed->second < static_cast<uint64_t>(entry->usage.ready_replicas)) return false;
  passed_.erase(passed);
  return true;
}

bool Evictor::may_leave(const Directory& directory, uint32_t slot, NamespaceId ns, Time now) const {
  const ReplicaSlot& s = directory.replicas().at(slot);
  if (s.lease_count > 0 || s.replica.state != ReplicaState::kReady) return false;
  if (ns.valid() && s.replica.key.namespace_id() != ns) return false;
  const Pin* pin = directory.pins().empty() ? nullptr : directory.find<Pin>(s.replica.id);
  return !pin || !pin->holds_at(now);
}

std::vector<ReplicaId> Evictor::pick(const Directory& directory, PoolId pool, NamespaceId ns,
                                     uint64_t need_bytes, Time now) {
  const PoolEntry* entry = directory.find_pool(pool);
  const auto found = pools_.find(pool);
  if (found == pools_.end() || entry->usage.ready_replicas == 0) return {};
  const auto average =
      static_cast<uint64_t>(entry->usage.ready_allocated_bytes / entry->usage.ready_replicas);
  const size_t count = std::clamp<uint64_t>(
      (need_bytes + average - 1) / std::max<uint64_t>(1, average), 1, config_.slice_replicas);
  std::vector<uint32_t> slots;
  uint64_t passed = 0;
  const Eligible eligible = [&](uint32_t slot) {
    const bool may = may_leave(directory, slot, ns, now);
    passed += !may;
    return may;
  };
  // By what each policy holds.
  const auto pick_from = [&](auto is_meant) {
    std::vector<EvictionPolicy*> from;
    from.reserve(found->second.size());
    size_t held = 0;
    for (const Group& group : found->second) {
      if (!group.policy || group.policy->size() == 0 || !is_meant(group)) continue;
      from.push_back(group.policy.get());
      held += group.policy->size();
    }
    for (EvictionPolicy* policy : from) {
      const size_t share =
          std::min(count - slots.size(), (count * policy->size() + held - 1) / held);
      policy->pick(share, eligible, slots);
    }
  };
  // A namespace makes room within itself, a pool from all of its policies.
  pick_from([&](const Group& group) { return !ns.valid() || group.namespace_id == ns; });
  // What the namespace stored before it had a quota lies among the others.
  if (ns.valid() && slots.size() < count)
    pick_from([](const Group& group) { return !group.namespace_id.valid(); });
  if (!slots.empty())
    passed_.erase({pool, ns});
  else if (passed > 0)
    passed_[{pool, ns}] += passed;
  std::vector<ReplicaId> victims;
  victims.reserve(slots.size());
  for (const uint32_t slot : slots) victims.push_back(directory.replicas().at(slot).replica.id);
  return victims;
}

void Evictor::answered(const Directory& directory, const MakeRoom& slice, const PerItem& outcome,
                       Time now) {
  uint64_t evicted = 0;
  for (size_t i = 0; i < slice.replicas.size(); ++i) {
    if (outcome.done[i]) {
      ++evicted;
      continue;
    }
    ++stats_.refused;
    const uint32_t slot = directory.replicas().slot_of(slice.replicas[i]);
    if (slot != ReplicaTable::kNone && !slots_.is_held(slot) &&
        directory.replicas().at(slot).replica.state == ReplicaState::kReady)
      insert_alone(directory, slot);
  }
  ++stats_.slices;
  stats_.evicted_replicas += evicted;
  stats_.slice_replicas_max = std::max(stats_.slice_replicas_max, evicted);
  if (evicted == 0 && !slice.job.valid()) {
    pools_due_.erase(slice.pool);
    rest(slice.pool, NamespaceId(), now);
  }
}

}  // namespace berth::policy
