#include "server/policy/evictor.h"

#include <algorithm>

#include "common/check.h"

namespace berth::policy {
Evictor::Evictor(EvictorConfig config, const DirectoryConfig& directory_config)
    : config_(config), directory_config_(directory_config), kind_(directory_config.eviction.kind) {}
Evictor::~Evictor() = default;

const EvictionSetting& Evictor::setting(const Directory& directory) const {
  return eviction_in_force(directory, directory_config_);
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

void Evictor::insert(const Replica& replica, EvictionPolicy& policy, uint8_t index, Chunk chunk) {
  chunk.key_hash = hash_of(replica.key);
  policy.inserted(chunk);
  slots_.at(chunk.slot).group = index;
}

// Of no request that is known: newer than everything that came before.
void Evictor::insert_alone(const Directory& directory, uint32_t slot) {
  const Replica& replica = directory.replicas().at(slot).replica;
  const uint8_t index = group_for(directory, replica.pool, replica.key.namespace_id());
  EvictionPolicy& policy = *pools_[replica.pool][index].policy;
  policy.resume();
  insert(replica, policy, index, Chunk{.slot = slot});
}

void Evictor::remove(const Directory& directory, uint32_t slot) {
  if (!slots_.is_held(slot)) return;
  const PoolId pool = directory.replicas().at(slot).replica.pool;
  pools_[pool][slots_.at(slot).group].policy->removed(slot);
}

void Evictor::before_install(const Directory& directory, std::span<const Mutation> mutations) {
  for (const Mutation& mutation : mutations) {
    if (mutation.key.kind != RecordKind::kReplica) continue;
    const auto* after = std::get_if<Replica>(&mutation.value);
    // What is READY stays, and what is still part of a reservation was never held.
    if (after && (after->state == ReplicaState::kReady || after->in_reservation)) continue;
    const uint32_t slot = directory.slot_of(mutation);
    if (slot != ReplicaTable::kNone) remove(directory, slot);
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
  std::pair<PoolId, NamespaceId> last;  // replicas of one store follow each other
  for (const Mutation& mutation : mutations) {
    if (const auto* replica = std::get_if<Replica>(&mutation.value)) {
      const std::pair where(replica->pool, replica->key.namespace_id());
      if (where != last) touched(directory, where.first, where.second);
      last = where;
      if (replica->state != ReplicaState::kReady) continue;
      const uint32_t slot = directory.slot_of(mutation);
      if (!slots_.is_held(slot)) insert_alone(directory, slot);  // adopted, not committed
    } else if (const auto* ns = record_if<Namespace>(mutation.value)) {
      namespaces_due_.insert(ns->id);
    } else if (const auto* job = std::get_if<Job>(&mutation.value)) {
      if (job->kind == JobKind::kTrimPool) trims_.insert(job->id);
    } else if (mutation.key.kind == RecordKind::kJob) {
      trims_.erase(JobId(mutation.key.first));
    } else if (mutation.key.kind == RecordKind::kEvictionSetting) {
      setting_changed(directory);
    } else if (const auto* presence = record_if<Presence>(mutation.value)) {
      if (!directory.is_present(presence->session)) continue;
      for (const PoolId id : directory.pools_of(presence->session)) look_at(id);
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
  std::pair<PoolId, NamespaceId> where;
  uint8_t index = 0;
  EvictionPolicy* policy = nullptr;
  std::vector<uint32_t> slots(commit.replicas.size());
  directory.replicas().slots_of(commit.replicas, slots);
  expect(directory, slots);
  for (size_t i = 0; i < slots.size(); ++i) {
    const uint32_t slot = slots[i];
    if (slot == ReplicaTable::kNone || slots_.is_held(slot)) continue;
    const Replica& replica = directory.replicas().at(slot).replica;
    if (replica.state != ReplicaState::kReady) continue;
    if (const std::pair here(replica.pool, replica.key.namespace_id()); here != where) {
      const bool is_untold = here.first != where.first;
      where = here;
      index = group_for(directory, where.first, where.second);
      policy = pools_[where.first][index].policy.get();
      // Behind a known prefix the request was announced when that was acquired.
      if (is_untold && is_known && commit.positions.front() > 0)
        policy->resume();
      else if (is_untold)
        policy->request();
    }
    Chunk chunk;
    chunk.slot = slot;
    chunk.position = is_known ? commit.positions[i] : 0;
    chunk.ends_chain = is_known && commit.ends_chain && chunk.position == last;
    insert(replica, *policy, index, chunk);
  }
}

// They mostly go where the first one goes.
void Evictor::expect(const Directory& directory, std::span<const uint32_t> slots) {
  const EvictionPolicy* policy = nullptr;
  for (const uint32_t slot : slots) {
    if (slot == ReplicaTable::kNone) continue;
    const Replica& replica = directory.replicas().at(slot).replica;
    if (!policy) {
      const uint8_t index = group_for(directory, replica.pool, replica.key.namespace_id());
      policy = pools_[replica.pool][index].policy.get();
    }
    policy->expect(hash_of(replica.key));
  }
}

void Evictor::acquired(const Directory& directory, const Acquired& acquired) {
  std::vector<ReplicaId> ids;
  ids.reserve(acquired.replicas.size());
  for (const Replica& replica : acquired.replicas) ids.push_back(replica.id);
  std::vector<uint32_t> slots(ids.size());
  directory.replicas().slots_of(ids, slots);
  used(directory, slots, &EvictionPolicy::request);
}

// What an engine wanted to store and found here is used again.
void Evictor::found(const Directory& directory, const Reserve& reserve, const Reserved& reserved) {
  const ReplicaTable& table = directory.replicas();
  std::vector<uint32_t> slots;
  for (size_t i = 0; i < reserved.codes.size(); ++i) {
    if (static_cast<StoreCode>(reserved.codes[i]) != StoreCode::kAlreadyPresent) continue;
    for (uint32_t slot = table.first_slot_of(reserve.keys[i]); slot != ReplicaTable::kNone;
         slot = table.at(slot).next_same_key)
      slots.push_back(slot);
  }
  used(directory, slots, &EvictionPolicy::resume);
}

// Each policy hears of its own, in order: a chain may lie in several pools.
void Evictor::used(const Directory& directory, std::span<const uint32_t> slots,
                   void (EvictionPolicy::*announce)()) {
  std::map<std::pair<PoolId, uint8_t>, std::vector<uint32_t>> by_group;
  std::pair<PoolId, uint8_t> last;
  std::vector<uint32_t>* group = nullptr;
  for (const uint32_t slot : slots) {
    if (slot == ReplicaTable::kNone || !slots_.is_held(slot)) continue;
    const std::pair here(directory.replicas().at(slot).replica.pool, slots_.at(slot).group);
    if (!group || here != last) group = &by_group[last = here];
    group->push_back(slot);
  }
  for (const auto& [where, own] : by_group) {
    EvictionPolicy& policy = *pools_[where.first][where.second].policy;
    (policy.*announce)();
    policy.accessed(own);
  }
}

void Evictor::skipped(const Directory& directory, const Reserve& reserve,
                      const Reserved& reserved) {
  for (size_t i = 0; i < reserved.codes.size(); ++i) {
    const auto code = static_cast<StoreCode>(reserved.codes[i]);
    if (code == StoreCode::kSkippedNamespaceQuota) look_at(reserve.namespace_id);
    if (code != StoreCode::kSkippedPoolFull) continue;
    const uint64_t size = reserve.sizes.size() == 1 ? reserve.sizes[0] : reserve.sizes[i];
    for (const PoolId id : directory.pools_of(reserve.id.caller.session)) {
      const Pool* pool = directory.find<Pool>(id);
      if (pool->pages_bytes(size) > pool->limit_bytes()) continue;
      uint64_t& wanted = wanted_bytes_[id];
      wanted = std::max(wanted, pool->pages_bytes(size));
      look_at(id);
    }
  }
}

void Evictor::touched(const Directory& directory, PoolId id, NamespaceId ns_id) {
  const EvictionSetting& set = setting(directory);
  const PoolEntry* entry = directory.find_pool(id);
  if (entry && entry->usage.held_bytes() > set.high_of(entry->pool.limit_bytes())) look_at(id);
  const Namespace* ns = directory.find<Namespace>(ns_id);
  if (ns && ns->quota_bytes > 0 &&
      directory.namespace_usage(ns_id).held_bytes() > set.high_of(ns->quota_bytes))
    look_at(ns_id);
}

// Unless it rests.
void Evictor::look_at(PoolId pool) {
  if (!resting_.contains({pool, NamespaceId()})) pools_due_.insert(pool);
}
void Evictor::look_at(NamespaceId ns) {
  if (!resting_.contains({PoolId(), ns})) namespaces_due_.insert(ns);
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
