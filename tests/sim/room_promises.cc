// The room witness's promises: what operators were told, what is hidden and what must be a hit, and
// what a restart must bring back.
#include <algorithm>

#include "common/text.h"
#include "server/directory/queries.h"
#include "tests/sim/commands.h"
#include "tests/sim/objects.h"
#include "tests/sim/room_witness.h"

namespace berth::sim {

bool RoomWitness::is_hidden(const Replica& replica) const {
  return hidden_.contains(replica.id) || drained_.contains(replica.pool) ||
         closed_.contains(replica.pool);
}

void RoomWitness::take_promises(const Directory& directory, const Command& command,
                                const Outcome& outcome) {
  if (std::holds_alternative<Drain>(command)) {
    for (const PoolId id : std::get<Draining>(outcome).pools) drained_.insert(id);
  } else if (std::holds_alternative<Undrain>(command)) {
    for (const PoolId id : std::get<Draining>(outcome).pools) drained_.erase(id);
  } else if (const auto* close = std::get_if<ClosePool>(&command)) {
    closed_.insert(close->pool);
  } else if (const auto* set = std::get_if<SetEviction>(&command)) {
    is_setting_known_ = true;
    setting_ = set->reset ? std::optional<EvictionSetting>() : set->setting;
  } else if (const auto* quota = std::get_if<SetNamespaceQuota>(&command)) {
    if (const Namespace* ns = directory.namespace_by_name(quota->name))
      quotas_[ns->id] = quota->quota_bytes;
  } else if (const auto* reserve = std::get_if<Reserve>(&command)) {
    note_skips(directory, *reserve, std::get<Reserved>(outcome));
  }
}

// ---- Hits and misses
// ---------------------------------------------------------------------------------------------

// A fresh lease protects nothing that was hidden when its batch began.
void RoomWitness::check_acquired(const Directory& directory, std::span<const Command> commands,
                                 const Decision& decision) {
  const bool is_undrained = any_is<Undrain>(commands);
  for (const Result<Outcome>& outcome : decision.outcomes) {
    const Acquired* acquired = outcome ? std::get_if<Acquired>(&*outcome) : nullptr;
    if (!acquired || directory.find<Lease>(acquired->lease)) continue;
    for (const Replica& replica : acquired->replicas)
      judge_.expect(!is_hidden(replica) || (is_undrained && !hidden_.contains(replica.id)), [&] {
        return "replica " + to_text(replica.id) + " of pool " + to_text(replica.pool) +
               " was acquired although it is hidden";
      });
  }
}

void RoomWitness::probe_someone(const Directory& directory) {
  std::vector<SessionId> clients;
  for (const auto& [id, session] : directory.sessions())
    if (session.role == Role::kClient && !session.ending && session.worker.valid())
      clients.push_back(id);
  if (!clients.empty()) probe_everything(directory, random_.pick(clients));
}

// The answer to a probe of each chunk, against the records: a hit has a READY copy of every shard
// that nothing hides; and what lies READY and unhidden in the worker's own shared pool is a hit.
void RoomWitness::probe_everything(const Directory& directory, SessionId client) {
  const SessionId worker = directory.find<Session>(client)->worker;
  const ReplicaTable& table = directory.replicas();
  for (size_t index = 0; index < kNamespaceCount; ++index) {
    const Namespace* ns = directory.namespace_by_name(namespace_spec(index).name());
    if (!ns) continue;
    const Result<std::vector<Reader>> readers = readers_for(directory, *ns, client, {});
    if (!readers) continue;
    for (uint64_t number = 0; number < weather_.chunk_count; ++number) {
      const std::string bytes = Chunk{index, number}.digest();
      Digest digest;
      std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
      bool may_hit = true;
      bool must_hit = directory.is_present(worker);
      for (uint32_t shard = 0; shard < kShards[index]; ++shard) {
        const ObjectKey key{digest, static_cast<uint32_t>(ns->id.value()),
                            static_cast<uint16_t>(shard), 0};
        bool may = false;
        bool must = false;
        for (uint32_t slot = table.first_slot_of(key); slot != ReplicaTable::kNone;
             slot = table.at(slot).next_same_key) {
          const Replica& replica = table.at(slot).replica;
          if (replica.state != ReplicaState::kReady || is_hidden(replica)) continue;
          const Pool& pool = *directory.find<Pool>(replica.pool);
          may = true;
          must |= pool.owner == worker && pool.spec.scope == Scope::kHost &&
                  pool.state != PoolState::kGone;
        }
        may_hit &= may;
        must_hit &= must;
      }
      const ProbeAnswer answer = probe(directory, *ns, {&digest, 1}, *readers);
      const bool hits = !answer.classes.empty();
      const auto chunk = [&] {
        return "chunk " + std::to_string(number) + " of namespace " + to_text(ns->id);
      };
      judge_.expect(!hits || may_hit,
                    [&] { return chunk() + " is a hit although every copy of it is hidden"; });
      judge_.expect(hits || !must_hit, [&] {
        return chunk() + " is a miss (" + std::string(name_of(answer.miss)) +
               ") although a copy is READY and nothing hides it";
      });
    }
  }
}

// ---- Restarts
// ------------------------------------------------------------------------------------------------------

// What a failed commit would have changed may be found or not.
void RoomWitness::commit_failed(const Decision& decision) {
  for (const Mutation& mutation : decision.mutations) {
    switch (mutation.key.kind) {
      case RecordKind::kPin:
        pins_told_.erase(ReplicaId(mutation.key.first));
        break;
      case RecordKind::kPool:
        drained_.erase(PoolId(mutation.key.first));
        break;
      case RecordKind::kEvictionSetting:
        is_setting_known_ = false;
        break;
      case RecordKind::kNamespace:
        quotas_.erase(NamespaceId(mutation.key.first));
        break;
      case RecordKind::kReplica:
        if (const auto* replica = std::get_if<Replica>(&mutation.value)) note_replica(*replica);
        pins_told_.erase(ReplicaId(mutation.key.first));
        break;
      default:
        break;
    }
    if (const auto* ns = record_if<Namespace>(mutation.value); ns && ns->evicted_below.valid())
      evicted_up_to_[ns->id] = std::max(evicted_up_to_[ns->id], newest_);
  }
}

void RoomWitness::loaded(const Directory& fresh) {
  for (const auto& [id, pin] : pins_told_) {
    const Replica* replica = fresh.find<Replica>(id);
    if (!replica || replica->state != ReplicaState::kReady) continue;
    const Pin* found = fresh.find<Pin>(id);
    judge_.expect(found && found->kind == pin.kind && found->expires == pin.expires, [id = id] {
      return "the pin on replica " + to_text(id) + " was given and is not there after a restart";
    });
  }
  for (const std::set<PoolId>* pools : {&drained_, &closed_})
    for (const PoolId id : *pools) {
      const Pool* pool = fresh.find<Pool>(id);
      judge_.expect(!pool || pool->state != PoolState::kOpen, [id] {
        return "pool " + to_text(id) + " was taken out of use and is open after a restart";
      });
    }
  if (is_setting_known_) {
    const EvictionSetting* found = fresh.find<EvictionSetting>({});
    judge_.expect(found ? setting_ == *found : !setting_,
                  [] { return "the eviction setting did not survive a restart"; });
  }
  for (const auto& [id, quota] : quotas_) {
    const Namespace* ns = fresh.find<Namespace>(id);
    judge_.expect(ns && ns->quota_bytes == quota, [id = id] {
      return "the quota of namespace " + to_text(id) + " did not survive a restart";
    });
  }
}

// The lists go on from what is there now.
void RoomWitness::restarted(const Directory& directory) {
  pins_.clear();
  for (const auto& [id, pin] : directory.pins()) pins_[id] = pin;
  std::erase_if(pins_told_, [&](const auto& told) { return !pins_.contains(told.first); });
  leases_.clear();
  leased_.clear();
  for (const auto& [id, lease] : directory.leases()) {
    leases_[id] = lease.replicas;
    for (const ReplicaId replica : lease.replicas) ++leased_[replica];
  }
  for (const auto& [id, entry] : directory.pools()) {
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = directory.replicas().at(slot).pool_next) {
      const Replica& replica = directory.replicas().at(slot).replica;
      note_replica(replica);
      // Of a namespace eviction whose commit was not known to have landed.
      if (replica.id < directory.find<Namespace>(replica.key.namespace_id())->evicted_below)
        hidden_.insert(replica.id);
    }
    if (entry.pool.state == PoolState::kDraining) drained_.insert(id);
    if (entry.pool.state == PoolState::kClosing) closed_.insert(id);
  }
  const EvictionSetting* set = directory.find<EvictionSetting>({});
  setting_ = set ? std::optional(*set) : std::nullopt;
  is_setting_known_ = true;
  for (const auto& [id, ns] : directory.namespaces()) quotas_[id] = ns.quota_bytes;
}

}  // namespace berth::sim
