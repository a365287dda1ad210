// The room witness at a commit: slices of policies, pins, bounds.
#include "tests/sim/room_witness.h"

#include <algorithm>

#include "common/text.h"
#include "server/directory/queries.h"
#include "tests/sim/commands.h"
#include "tests/sim/objects.h"

namespace berth::sim {
namespace {

uint64_t budget_of(const Pool& pool) {
  return std::min(pool.spec.budget_bytes, pool.spec.capacity_bytes);
}
// What retires is on its way already.
uint64_t held_bytes(const PoolUsage& usage) {
  return static_cast<uint64_t>(usage.allocated_bytes() - usage.retiring_bytes);
}
uint64_t held_bytes(const NamespaceUsage& usage) {
  return static_cast<uint64_t>(usage.allocated_bytes - usage.retiring_bytes);
}

}  // namespace

EvictionSetting RoomWitness::setting(const Directory& directory) const {
  const EvictionSetting* set = directory.find<EvictionSetting>({});
  return set ? *set : weather_.directory.eviction;
}

bool RoomWitness::is_pinned(ReplicaId replica, Time now) const {
  const auto it = pins_.find(replica);
  return it != pins_.end() && (it->second.kind == PinKind::kHard || it->second.expires > now);
}

void RoomWitness::note_replica(const Replica& replica) { newest_ = std::max(newest_, replica.id); }

void RoomWitness::before_install(const Directory& directory, std::span<const Command> commands,
                                 const Decision& decision, Time now) {
  check_acquired(directory, commands, decision);
  check_bounds(directory, commands, decision);
  for (const Command& command : commands)
    if (const auto* slice = std::get_if<MakeRoom>(&command)) check_slice(directory, *slice, now);
  for (size_t i = 0; i < commands.size(); ++i) {
    const auto* evict = std::get_if<EvictNamespace>(&commands[i]);
    const Namespace* ns = evict ? directory.namespace_by_name(evict->name) : nullptr;
    if (!ns || !decision.outcomes[i]) continue;
    for (const auto& [id, entry] : directory.pools())
      for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
           slot = directory.replicas().at(slot).pool_next)
        if (const Replica& r = directory.replicas().at(slot).replica;
            r.key.namespace_id() == ns->id)
          hidden_.insert(r.id);
  }
  for (const Mutation& mutation : decision.mutations) {
    if (const auto* replica = std::get_if<Replica>(&mutation.value)) note_replica(*replica);
    if (mutation.key.kind == RecordKind::kPin)
      check_pin_edge(directory, commands, decision, ReplicaId(mutation.key.first),
                     std::get_if<Pin>(&mutation.value), now);
    if (mutation.key.kind == RecordKind::kLease) {
      const LeaseId id(mutation.key.first);
      for (const ReplicaId replica : leases_[id]) --leased_[replica];
      leases_.erase(id);
      if (const auto* lease = std::get_if<Lease>(&mutation.value)) {
        leases_[id] = lease->replicas;
        for (const ReplicaId replica : lease->replicas) ++leased_[replica];
      }
    }
  }
  if (any_is<EvictNamespace>(commands))
    for (const Mutation& mutation : decision.mutations)
      if (const auto* ns = record_if<Namespace>(mutation.value); ns && ns->evicted_below.valid())
        evicted_up_to_[ns->id] = newest_;
}

void RoomWitness::after_install(const Directory& directory, std::span<const Command> commands,
                                const Decision& decision) {
  for (size_t i = 0; i < commands.size(); ++i)
    if (decision.outcomes[i]) take_promises(directory, commands[i], *decision.outcomes[i]);
  check_hard_pins(directory);
  look_at(directory);
  const bool changes_hits = any_is<Drain>(commands) || any_is<Undrain>(commands) ||
                            any_is<ClosePool>(commands) || any_is<EvictNamespace>(commands);
  if (changes_hits || random_.chance(30)) probe_someone(directory);
}

// ---- Slices of policies
// ------------------------------------------------------------------------------------------

void RoomWitness::look_at(const Directory& directory) {
  const EvictionSetting set = setting(directory);
  for (const auto& [id, entry] : directory.pools())
    if (held_bytes(entry.usage) > set.high_of(budget_of(entry.pool))) {
      Need& need = pool_needs_[id];
      if (!need.is_begun) need = {true, need.wanted_bytes, failures_};
    }
  for (const auto& [id, ns] : directory.namespaces())
    if (ns.quota_bytes > 0 &&
        held_bytes(directory.namespace_usage(id)) > set.high_of(ns.quota_bytes)) {
      Need& need = namespace_needs_[id];
      if (!need.is_begun) need = {true, 0, failures_};
    }
}

void RoomWitness::note_skips(const Directory& directory, const Reserve& reserve,
                             const Reserved& reserved) {
  for (size_t i = 0; i < reserved.codes.size(); ++i) {
    if (static_cast<StoreCode>(reserved.codes[i]) != StoreCode::kSkippedPoolFull) continue;
    const uint64_t size = reserve.sizes.size() == 1 ? reserve.sizes[0] : reserve.sizes[i];
    for (const auto& [id, entry] : directory.pools()) {
      if (entry.pool.owner != reserve.id.caller.session) continue;
      Need& need = pool_needs_[id];
      need.wanted_bytes = std::max(need.wanted_bytes, entry.pool.pages_bytes(size));
      if (need.is_begun) continue;
      need.is_begun = held_bytes(entry.usage) + need.wanted_bytes > budget_of(entry.pool);
      need.failures = failures_;
    }
  }
}

void RoomWitness::evictor_started(const Directory& directory, uint64_t nothing_evictable) {
  failures_ = nothing_evictable;
  pool_needs_.clear();
  namespace_needs_.clear();
  look_at(directory);
}

// What had begun is over when it came down to the low watermark and nothing is left to look at. A
// pool in which nothing could leave is looked at again later, so it is not over.
void RoomWitness::evictor_rests(const Directory& directory, uint64_t nothing_evictable) {
  failures_ = nothing_evictable;
  const EvictionSetting set = setting(directory);
  std::erase_if(pool_needs_, [&](const auto& entry) {
    const PoolEntry* pool = directory.find_pool(entry.first);
    if (!pool) return true;
    const uint64_t held = held_bytes(pool->usage);
    return held <= set.low_of(budget_of(pool->pool)) &&
           held + entry.second.wanted_bytes <= budget_of(pool->pool) &&
           entry.second.failures == failures_;
  });
  std::erase_if(namespace_needs_, [&](const auto& entry) {
    const Namespace* ns = directory.find<Namespace>(entry.first);
    return !ns || ns->quota_bytes == 0 ||
           (held_bytes(directory.namespace_usage(entry.first)) <= set.low_of(ns->quota_bytes) &&
            entry.second.failures == failures_);
  });
}

void RoomWitness::check_victims(const Directory& directory, const MakeRoom& slice, Time now) {
  for (const ReplicaId id : slice.replicas) {
    const Replica* replica = directory.find<Replica>(id);
    const auto leased = leased_.find(id);
    const char* wrong = nullptr;
    if (!replica || replica->state != ReplicaState::kReady)
      wrong = "which is not READY";
    else if (replica->pool != slice.pool)
      wrong = "which lies in another pool";
    else if (leased != leased_.end() && leased->second > 0)
      wrong = "which is leased";
    else if (is_pinned(id, now))
      wrong = "which is pinned";
    judge_.expect(!wrong, [&] { return "a policy chose replica " + to_text(id) + ", " + wrong; });
  }
}

void RoomWitness::check_slice(const Directory& directory, const MakeRoom& slice, Time now) {
  check_victims(directory, slice, now);
  judge_.expect(slice.replicas.size() <= weather_.evictor.slice_replicas, [&] {
    return "a policy chose " + std::to_string(slice.replicas.size()) +
           " replicas, more than a slice holds";
  });
  const PoolEntry* entry = directory.find_pool(slice.pool);
  if (!entry || slice.replicas.empty() || judge_.failed()) return;

  const EvictionSetting set = setting(directory);
  uint64_t held = held_bytes(entry->usage);
  uint64_t goal = 0;
  bool has_reason = false;
  if (slice.job.valid()) {
    const Job* job = directory.find<Job>(slice.job);
    has_reason = job && job->kind == JobKind::kTrimPool && job->pool == slice.pool;
    goal = job ? job->target_bytes : 0;
  } else if (slice.why == Why::kMadeRoomInNamespace) {
    const NamespaceId id = directory.find<Replica>(slice.replicas.front())->key.namespace_id();
    const Namespace& ns = *directory.find<Namespace>(id);
    has_reason = ns.quota_bytes > 0 && namespace_needs_.contains(id);
    held = held_bytes(directory.namespace_usage(id));
    goal = set.low_of(ns.quota_bytes);
    for (const ReplicaId victim : slice.replicas)
      judge_.expect(directory.find<Replica>(victim)->key.namespace_id() == id, [&] {
        return "namespace " + to_text(id) + " makes room at the expense of another";
      });
  } else if (const auto need = pool_needs_.find(slice.pool); need != pool_needs_.end()) {
    const uint64_t budget = budget_of(entry->pool);
    const uint64_t wanted = std::min(budget, need->second.wanted_bytes);
    has_reason = need->second.is_begun || held + wanted > budget;
    goal = std::min(set.low_of(budget), budget - wanted);
    need->second.is_begun |= has_reason;
  }
  judge_.expect(has_reason, [&] {
    return "pool " + to_text(slice.pool) + " makes room (" + std::string(name_of(slice.why)) +
           ") without a reason: it holds " + std::to_string(held) + " bytes";
  });
  judge_.expect(held > goal, [&] {
    return "pool " + to_text(slice.pool) + " makes room (" + std::string(name_of(slice.why)) +
           ") past its goal: " + std::to_string(held) + " bytes are held, " + std::to_string(goal) +
           " may be";
  });
  if (judge_.failed()) return;
  const uint64_t average = std::max<uint64_t>(
      1, static_cast<uint64_t>(entry->usage.ready_allocated_bytes / entry->usage.ready_replicas));
  judge_.expect((slice.replicas.size() - 1) * average < held - goal, [&] {
    return "pool " + to_text(slice.pool) +
           " makes too much room: " + std::to_string(slice.replicas.size()) + " replicas for " +
           std::to_string(held - goal) + " bytes";
  });
}

// One slice of a job or of a policy changes about as many records as it may.
void RoomWitness::check_bounds(const Directory& directory, std::span<const Command> commands,
                               const Decision& decision) {
  if (commands.size() != 1) return;
  uint64_t most = UINT64_MAX;
  if (const auto* run = std::get_if<RunJob>(&commands.front())) {
    const Job* job = directory.find<Job>(run->job);
    most = weather_.directory.slice_records;
    // One reservation or lease is ended whole.
    if (job && job->kind == JobKind::kEndSession) most += weather_.directory.batch_items_max;
  } else if (std::holds_alternative<MakeRoom>(commands.front())) {
    most = weather_.evictor.slice_replicas;
  }
  const auto changed = static_cast<uint64_t>(
      std::count_if(decision.mutations.begin(), decision.mutations.end(),
                    [](const Mutation& m) { return m.key.kind == RecordKind::kReplica; }));
  judge_.expect(changed <= most, [&] {
    return "one slice changed " + std::to_string(changed) + " replicas; its bound is " +
           std::to_string(most);
  });
}

// ---- What leaves
// -------------------------------------------------------------------------------------------------

void RoomWitness::check_retired(const Directory& directory, std::span<const Command> commands,
                                const Replica& before, Time now) {
  // What is written is kept, unless it was to go already when its bytes came.
  const bool is_named = any_is<Drain>(commands) || any_is<ClosePool>(commands) ||
                        any_is<EvictNamespace>(commands) || any_is<Evict>(commands) ||
                        any_is<EvictChunks>(commands);
  if (before.state == ReplicaState::kReserved && any_is<Commit>(commands) && !is_named)
    judge_.expect(is_hidden(before) || before.id <= evicted_up_to_[before.key.namespace_id()], [&] {
      return "replica " + to_text(before.id) +
             " was evicted with its namespace although it was stored after it";
    });
  for (const Command& command : commands) {
    const bool respects_pins = std::holds_alternative<MakeRoom>(command) ||
                               std::holds_alternative<Evict>(command) ||
                               std::holds_alternative<EvictChunks>(command);
    const bool is_certain = !any_is<PinChunks>(commands) && !any_is<UnpinChunks>(commands) &&
                            !any_is<ReconcileChunk>(commands);
    if (respects_pins && is_certain)
      judge_.expect(!is_pinned(before.id, now), [&] {
        return "replica " + to_text(before.id) + " was evicted although it is pinned";
      });
    const auto* run = std::get_if<RunJob>(&command);
    const Job* job = run ? directory.find<Job>(run->job) : nullptr;
    if (!job || job->kind != JobKind::kEvictNamespace) continue;
    judge_.expect(before.key.namespace_id() == job->namespace_id, [&] {
      return "the eviction of namespace " + to_text(job->namespace_id) + " touched replica " +
             to_text(before.id) + " of another one";
    });
    judge_.expect(before.id <= evicted_up_to_[job->namespace_id], [&] {
      return "the eviction of namespace " + to_text(job->namespace_id) + " touched replica " +
             to_text(before.id) + ", which was stored after it";
    });
  }
}

// ---- Pins
// --------------------------------------------------------------------------------------------------------

void RoomWitness::check_pin_edge(const Directory& directory, std::span<const Command> commands,
                                 const Decision& decision, ReplicaId id, const Pin* after,
                                 Time now) {
  const auto state_after = [&]() -> std::optional<ReplicaState> {
    for (const Mutation& m : decision.mutations)
      if (m.key == RecordTraits<Replica>::key(id)) {
        const auto* replica = std::get_if<Replica>(&m.value);
        return replica ? std::optional(replica->state) : std::nullopt;
      }
    const Replica* replica = directory.find<Replica>(id);
    return replica ? std::optional(replica->state) : std::nullopt;
  };
  if (after) {
    judge_.expect(any_is<PinChunks>(commands),
                  [&] { return "replica " + to_text(id) + " was pinned by nobody"; });
    judge_.expect(state_after() == ReplicaState::kReady, [&] {
      return "replica " + to_text(id) + " was pinned although it is not READY";
    });
    const auto before = pins_.find(id);
    const bool was_hard = before != pins_.end() && before->second.kind == PinKind::kHard;
    if (after->kind == PinKind::kHard && !was_hard) newly_hard_.insert(id);
    pins_[id] = *after;
    pins_told_[id] = *after;
    return;
  }
  const auto known = pins_.find(id);
  if (known == pins_.end()) return;  // pinned and unpinned within one commit
  const bool is_over = known->second.kind == PinKind::kSoft && known->second.expires <= now;
  judge_.expect(any_is<UnpinChunks>(commands) || state_after() != ReplicaState::kReady ||
                    (is_over && any_is<Tick>(commands)),
                [&] { return "the pin on replica " + to_text(id) + " ended before its time"; });
  pins_.erase(known);
  pins_told_.erase(id);
}

// What hard pins keep stays under the low watermark, or a policy could not make room.
void RoomWitness::check_hard_pins(const Directory& directory) {
  std::set<PoolId> pinned_in;
  for (const ReplicaId id : std::exchange(newly_hard_, {}))
    if (const Replica* replica = directory.find<Replica>(id)) pinned_in.insert(replica->pool);
  for (const PoolId id : pinned_in) {
    const Pool& pool = *directory.find<Pool>(id);
    uint64_t bytes = 0;
    for (const auto& [replica_id, pin] : pins_) {
      const Replica* replica = directory.find<Replica>(replica_id);
      if (pin.kind == PinKind::kHard && replica && replica->pool == id)
        bytes += pool.pages_bytes(replica->size_bytes);
    }
    judge_.expect(bytes <= setting(directory).low_of(budget_of(pool)), [&] {
      return "hard pins keep " + std::to_string(bytes) + " bytes of pool " + to_text(id) +
             ", more than its low watermark";
    });
  }
}

// ---- What policies hold
// ------------------------------------------------------------------------------------------

void RoomWitness::check_policies(const Directory& directory, const policy::Evictor& evictor) {
  std::map<PoolId, uint64_t> held;
  for (const policy::PolicyRow& row : evictor.rows()) held[row.pool] += row.held;
  for (const auto& [id, entry] : directory.pools()) {
    const auto ready = static_cast<uint64_t>(entry.usage.ready_replicas);
    judge_.expect(held[id] == ready, [&, id = id] {
      return "the policies of pool " + to_text(id) + " hold " + std::to_string(held[id]) +
             " replicas, " + std::to_string(ready) + " are READY";
    });
    held.erase(id);
  }
  for (const auto& [id, count] : held)
    judge_.expect(count == 0, [id = id] {
      return "a policy holds replicas of pool " + to_text(id) + ", which is gone";
    });
}

std::string RoomWitness::overfull(const Directory& directory, Time now) const {
  const EvictionSetting set = setting(directory);
  std::map<NamespaceId, bool> may_leave_in;
  for (const auto& [id, entry] : directory.pools()) {
    bool may_leave = false;
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = directory.replicas().at(slot).pool_next) {
      const Replica& replica = directory.replicas().at(slot).replica;
      const bool may = replica.state == ReplicaState::kReady && !is_pinned(replica.id, now);
      may_leave |= may;
      may_leave_in[replica.key.namespace_id()] |= may;
    }
    if (may_leave && held_bytes(entry.usage) > set.high_of(budget_of(entry.pool)))
      return "pool " + to_text(id) + " is over its high watermark and makes no room";
  }
  for (const auto& [id, ns] : directory.namespaces())
    if (ns.quota_bytes > 0 && may_leave_in[id] &&
        held_bytes(directory.namespace_usage(id)) > set.high_of(ns.quota_bytes))
      return "namespace " + to_text(id) + " is over its high watermark and makes no room: " +
             std::to_string(held_bytes(directory.namespace_usage(id))) + " bytes of " +
             std::to_string(ns.quota_bytes);
  return "";
}

}  // namespace berth::sim
