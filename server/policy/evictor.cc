#include "server/policy/evictor.h"

#include <algorithm>

#include "common/check.h"

namespace berth::policy {
namespace {

uint64_t budget_of(const Pool& pool) {
  return std::min(pool.spec.budget_bytes, pool.spec.capacity_bytes);
}

// What eviction could still change: memory that retires already is on its way.
uint64_t held_bytes(const PoolUsage& usage) {
  return static_cast<uint64_t>(usage.allocated_bytes() - usage.retiring_bytes);
}
uint64_t held_bytes(const NamespaceUsage& usage) {
  return static_cast<uint64_t>(usage.allocated_bytes - usage.retiring_bytes);
}

}  // namespace

Evictor::Evictor(EvictorConfig config, const DirectoryConfig& directory_config)
    : config_(config), directory_config_(directory_config), kind_(directory_config.eviction.kind) {}
Evictor::~Evictor() = default;
Evictor::Evictor(Evictor&&) noexcept = default;

EvictionSetting Evictor::setting(const Directory& directory) const {
  const EvictionSetting* set = directory.find<EvictionSetting>({});
  return set ? *set : directory_config_.eviction;
}

// ---- Feeding
// ---------------------------------------------------------------------------------------------

void Evictor::start(const Directory& directory) {
  slots_ = SlotStates();
  pools_.clear();
  pools_due_.clear();
  namespaces_due_.clear();
  moves_.clear();
  trims_.clear();
  making_room_.clear();
  making_room_in_.clear();
  wanted_bytes_.clear();
  passed_.clear();
  resting_.clear();
  kind_ = setting(directory).kind;
  std::vector<std::pair<ReplicaId, uint32_t>> ready;
  const ReplicaTable& table = directory.replicas();
  for (uint32_t slot = 0; slot < table.slot_limit(); ++slot)
    if (const Replica& r = table.at(slot).replica; r.id.valid() && r.state == ReplicaState::kReady)
      ready.push_back({r.id, slot});
  std::sort(ready.begin(), ready.end());
  for (const auto& [id, slot] : ready) insert_alone(directory, slot);
  for (const auto& [id, entry] : directory.pools()) pools_due_.insert(id);
  for (const auto& [id, ns] : directory.namespaces()) namespaces_due_.insert(id);
  for (const auto& [id, job] : directory.jobs())
    if (job.kind == JobKind::kTrimPool) trims_.insert(id);
}

uint8_t Evictor::group_for(const Directory& directory, PoolId pool, NamespaceId ns) {
  const Namespace* record = directory.find<Namespace>(ns);
  const NamespaceId own = record && record->quota_bytes > 0 ? ns : NamespaceId();
  const Groups& groups = pools_[pool];
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i].policy && !groups[i].is_leaving && groups[i].namespace_id == own)
      return static_cast<uint8_t>(i);
  return add_group(directory, pool, own);
}

uint8_t Evictor::add_group(const Directory& directory, PoolId pool, NamespaceId ns) {
  Groups& groups = pools_[pool];
  Group fresh{ns, kind_, make_eviction_policy(kind_, slots_), false};
  for (size_t i = 0; i < groups.size(); ++i)
    if (!groups[i].policy) {
      groups[i] = std::move(fresh);
      return static_cast<uint8_t>(i);
    }
  // More namespaces with quotas than that share the common policy; its place is always kept.
  if (ns.valid() && groups.size() + 1 >= kGroupsMax)
    return group_for(directory, pool, NamespaceId());
  BERTH_CHECK(groups.size() < kGroupsMax, "the common policy has a place");
  groups.push_back(std::move(fresh));
  return static_cast<uint8_t>(groups.size() - 1);
}

void Evictor::insert(const Directory& directory, uint32_t slot, const Chunk& chunk) {
  const Replica& replica = directory.replicas().at(slot).replica;
  const uint8_t index = group_for(directory, replica.pool, replica.key.namespace_id());
  Chunk named = chunk;
  named.slot = slot;
  named.key_hash = hash_of(replica.key);
  pools_[replica.pool][index].policy->inserted(named);
  slots_.at(slot).group = index;
}

// Of no request that is known: newer than everything that came before.
void Evictor::insert_alone(const Directory& directory, uint32_t slot) {
  const Replica& replica = directory.replicas().at(slot).replica;
  const uint8_t index = group_for(directory, replica.pool, replica.key.namespace_id());
  pools_[replica.pool][index].policy->resume();
  insert(directory, slot, Chunk{});
}

void Evictor::remove(const Directory& directory, uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  const PoolId pool = directory.replicas().at(slot).replica.pool;
  pools_[pool][slots_.at(slot).group].policy->removed(slot);
}

void Evictor::before_install(const Directory& directory, std::span<const Mutation> mutations) {
  for (const Mutation& mutation : mutations) {
    if (mutation.key.kind != RecordKind::kReplica) continue;
    const uint32_t slot = directory.replicas().slot_of(ReplicaId(mutation.key.first));
    if (slot == ReplicaTable::kNone) continue;
    const auto* after = std::get_if<Replica>(&mutation.value);
    if (!after || after->state != ReplicaState::kReady) remove(directory, slot);
  }
}

void Evictor::after_install(const Directory& directory, std::span<const Command> commands,
                            std::span<const Result<Outcome>> outcomes,
                            std::span<const Mutation> mutations) {
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!outcomes[i]) continue;
    if (const auto* commit = std::get_if<Commit>(&commands[i]))
      committed(directory, *commit);
    else if (std::holds_alternative<Acquire>(commands[i]))
      acquired(directory, std::get<Acquired>(*outcomes[i]));
    else if (const auto* reserve = std::get_if<Reserve>(&commands[i])) {
      found(directory, *reserve, std::get<Reserved>(*outcomes[i]));
      skipped(directory, *reserve, std::get<Reserved>(*outcomes[i]));
    }
  }
  for (const Mutation& mutation : mutations) {
    if (const auto* replica = std::get_if<Replica>(&mutation.value)) {
      touched(directory, replica->pool, replica->key.namespace_id());
      if (replica->state != ReplicaState::kReady) continue;
      const uint32_t slot = directory.replicas().slot_of(replica->id);
      if (!slots_.is_held(slot)) insert_alone(directory, slot);  // adopted, not committed
    } else if (const auto* ns = std::get_if<Namespace>(&mutation.value)) {
      namespaces_due_.insert(ns->id);
    } else if (const auto* job = std::get_if<Job>(&mutation.value)) {
      if (job->kind == JobKind::kTrimPool) trims_.insert(job->id);
    } else if (mutation.key.kind == RecordKind::kJob) {
      trims_.erase(JobId(mutation.key.first));
    } else if (mutation.key.kind == RecordKind::kEvictionSetting) {
      setting_changed(directory);
    } else if (const auto* presence = std::get_if<Presence>(&mutation.value)) {
      if (!directory.is_present(presence->session)) continue;
      for (const PoolId id : directory.pools_of(presence->session))
        if (!resting_.contains({id, NamespaceId()})) pools_due_.insert(id);
    } else if (mutation.key.kind == RecordKind::kPool &&
               std::holds_alternative<Forgotten>(mutation.value)) {
      const PoolId pool(mutation.key.first);
      pools_.erase(pool);
      pools_due_.erase(pool);
      moves_.erase(pool);
      making_room_.erase(pool);
      wanted_bytes_.erase(pool);
      std::erase_if(passed_, [&](const auto& entry) { return entry.first.first == pool; });
      resting_.erase({pool, NamespaceId()});
    }
  }
}

// In the order of the commit, which is the order of the chain.
void Evictor::committed(const Directory& directory, const Commit& commit) {
  const bool is_known = commit.positions.size() == commit.replicas.size();
  uint32_t last = 0;
  for (const uint32_t position : commit.positions) last = std::max(last, position);
  PoolId told;
  for (size_t i = 0; i < commit.replicas.size(); ++i) {
    const uint32_t slot = directory.replicas().slot_of(commit.replicas[i]);
    if (slot == ReplicaTable::kNone || slots_.is_held(slot)) continue;
    const Replica& replica = directory.replicas().at(slot).replica;
    if (replica.state != ReplicaState::kReady) continue;
    const uint32_t position = is_known ? commit.positions[i] : 0;
    if (replica.pool != told) {
      const uint8_t index = group_for(directory, replica.pool, replica.key.namespace_id());
      EvictionPolicy& policy = *pools_[replica.pool][index].policy;
      // Behind a known prefix the request was announced when that was acquired.
      if (is_known && commit.positions.front() > 0)
        policy.resume();
      else
        policy.request();
      told = replica.pool;
    }
    Chunk chunk;
    chunk.position = position;
    chunk.ends_chain = is_known && commit.ends_chain && position == last;
    insert(directory, slot, chunk);
  }
}

void Evictor::acquired(const Directory& directory, const Acquired& acquired) {
  // By group: a chain may lie in several pools.
  std::map<std::pair<PoolId, uint8_t>, std::vector<uint32_t>> by_group;
  for (const Replica& replica : acquired.replicas) {
    const uint32_t slot = directory.replicas().slot_of(replica.id);
    if (slot != ReplicaTable::kNone && slots_.is_held(slot))
      by_group[{replica.pool, slots_.at(slot).group}].push_back(slot);
  }
  for (const auto& [where, slots] : by_group) {
    EvictionPolicy& policy = *pools_[where.first][where.second].policy;
    policy.request();
    policy.accessed(slots);
  }
}

// What an engine wanted to store and found here is used again.
void Evictor::found(const Directory& directory, const Reserve& reserve, const Reserved& reserved) {
  const ReplicaTable& table = directory.replicas();
  std::map<std::pair<PoolId, uint8_t>, std::vector<uint32_t>> by_group;
  for (size_t i = 0; i < reserved.codes.size(); ++i) {
    if (static_cast<StoreCode>(reserved.codes[i]) != StoreCode::kAlreadyPresent) continue;
    for (uint32_t slot = table.first_slot_of(reserve.keys[i]); slot != ReplicaTable::kNone;
         slot = table.at(slot).next_same_key)
      if (slots_.is_held(slot))
        by_group[{table.at(slot).replica.pool, slots_.at(slot).group}].push_back(slot);
  }
  for (const auto& [where, slots] : by_group) {
    EvictionPolicy& policy = *pools_[where.first][where.second].policy;
    policy.resume();
    policy.accessed(slots);
  }
}

void Evictor::skipped(const Directory& directory, const Reserve& reserve,
                      const Reserved& reserved) {
  for (size_t i = 0; i < reserved.codes.size(); ++i) {
    const auto code = static_cast<StoreCode>(reserved.codes[i]);
    if (code == StoreCode::kSkippedNamespaceQuota &&
        !resting_.contains({PoolId(), reserve.namespace_id}))
      namespaces_due_.insert(reserve.namespace_id);
    if (code != StoreCode::kSkippedPoolFull) continue;
    const uint64_t size = reserve.sizes.size() == 1 ? reserve.sizes[0] : reserve.sizes[i];
    for (const PoolId id : directory.pools_of(reserve.id.caller.session)) {
      const Pool* pool = directory.find<Pool>(id);
      if (pool->pages_bytes(size) > budget_of(*pool)) continue;
      uint64_t& wanted = wanted_bytes_[id];
      wanted = std::max(wanted, pool->pages_bytes(size));
      if (!resting_.contains({id, NamespaceId()})) pools_due_.insert(id);
    }
  }
}

void Evictor::touched(const Directory& directory, PoolId id, NamespaceId ns_id) {
  const PoolEntry* entry = directory.find_pool(id);
  if (entry && held_bytes(entry->usage) > setting(directory).high_of(budget_of(entry->pool)) &&
      !resting_.contains({id, NamespaceId()}))
    pools_due_.insert(id);
  const Namespace* ns = directory.find<Namespace>(ns_id);
  if (ns && ns->quota_bytes > 0 &&
      held_bytes(directory.namespace_usage(ns_id)) > setting(directory).high_of(ns->quota_bytes) &&
      !resting_.contains({PoolId(), ns_id}))
    namespaces_due_.insert(ns_id);
}

void Evictor::setting_changed(const Directory& directory) {
  for (const auto& [id, entry] : directory.pools()) pools_due_.insert(id);
  for (const auto& [id, ns] : directory.namespaces()) namespaces_due_.insert(id);
  const EvictionKind kind = setting(directory).kind;
  if (kind == kind_) return;
  kind_ = kind;
  for (auto& [id, groups] : pools_)
    for (size_t i = 0; i < groups.size(); ++i) {
      // Changes that follow each other faster than slices: what still leaves moves now, whole.
      if (groups[i].policy && groups[i].is_leaving) move_slots(directory, id, i, SIZE_MAX);
      if (!groups[i].policy || groups[i].kind == kind) continue;
      groups[i].is_leaving = true;
      moves_.insert(id);
    }
}

// What the old policy would evict first becomes the oldest of the new one.
void Evictor::move_slots(const Directory& directory, PoolId pool, size_t index, size_t most) {
  std::vector<uint32_t> moving;
  EvictionPolicy& from = *pools_[pool][index].policy;
  from.pick(
      std::min(most, from.size()), [](uint32_t) { return true; }, moving);
  for (const uint32_t slot : moving) insert_alone(directory, slot);
  Group& left = pools_[pool][index];
  if (left.policy->size() == 0) left = Group{};
}

void Evictor::move_some(const Directory& directory) {
  if (moves_.empty()) return;
  const PoolId pool = *moves_.begin();
  const auto it = pools_.find(pool);
  if (it != pools_.end())
    for (size_t i = 0; i < it->second.size(); ++i)
      if (it->second[i].policy && it->second[i].is_leaving)
        return move_slots(directory, pool, i, config_.move_replicas);
  moves_.erase(pool);
}

// ---- Choosing
// --------------------------------------------------------------------------------------------

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
    if (held_bytes(entry->usage) <= job->target_bytes)
      return MakeRoom{job->pool, {}, Why::kPoolTrimmed, id};
    std::vector<ReplicaId> victims = pick(directory, job->pool, NamespaceId(),
                                          held_bytes(entry->usage) - job->target_bytes, now);
    if (victims.empty() && !went_round(directory, job->pool, NamespaceId())) return std::nullopt;
    return MakeRoom{job->pool, std::move(victims), Why::kPoolTrimmed, id};
  }
  return std::nullopt;
}

// What may be held at most, or nothing when there is no reason to make room.
std::optional<uint64_t> Evictor::goal_of(const Directory& directory, const PoolEntry& entry) {
  const PoolId id = entry.pool.id;
  const uint64_t budget = budget_of(entry.pool);
  const uint64_t held = held_bytes(entry.usage);
  const EvictionSetting set = setting(directory);
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
        pick(directory, id, NamespaceId(), held_bytes(entry->usage) - *goal, now);
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
    const EvictionSetting set = setting(directory);
    const uint64_t held = held_bytes(directory.namespace_usage(id));
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
  return !pin || (pin->kind == PinKind::kSoft && pin->expires <= now);
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
  // A namespace makes room within itself; a pool from all of its policies, by what each holds.
  std::vector<EvictionPolicy*> from;
  size_t held = 0;
  const auto take_groups_of = [&](NamespaceId owner, bool any) {
    for (const Group& group : found->second)
      if (group.policy && group.policy->size() > 0 && (any || group.namespace_id == owner)) {
        from.push_back(group.policy.get());
        held += group.policy->size();
      }
  };
  std::vector<uint32_t> slots;
  uint64_t passed = 0;
  const Eligible eligible = [&](uint32_t slot) {
    const bool may = may_leave(directory, slot, ns, now);
    passed += !may;
    return may;
  };
  const auto pick_from = [&](NamespaceId owner, bool any) {
    from.clear();
    held = 0;
    take_groups_of(owner, any);
    for (EvictionPolicy* policy : from) {
      const size_t share =
          std::min(count - slots.size(), (count * policy->size() + held - 1) / held);
      policy->pick(share, eligible, slots);
    }
  };
  pick_from(ns, !ns.valid());
  // What the namespace stored before it had a quota lies among the others.
  if (ns.valid() && slots.size() < count) pick_from(NamespaceId(), false);
  if (!slots.empty())
    passed_.erase({pool, ns});
  else if (passed > 0)
    passed_[{pool, ns}] += passed;
  std::vector<ReplicaId> victims;
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

// ---- Views
// ---------------------------------------------------------------------------------------------

std::vector<PolicyRow> Evictor::rows() const {
  std::vector<PolicyRow> rows;
  for (const auto& [pool, groups] : pools_)
    for (const Group& group : groups)
      if (group.policy)
        rows.push_back({pool, group.namespace_id, group.kind, group.policy->size(),
                        group.policy->memory_bytes(), group.policy->describe()});
  return rows;
}

size_t Evictor::memory_bytes() const {
  size_t sum = slots_.memory_bytes();
  for (const auto& [pool, groups] : pools_)
    for (const Group& group : groups)
      if (group.policy) sum += group.policy->memory_bytes();
  return sum;
}

}  // namespace berth::policy
