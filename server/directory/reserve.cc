// The handler of Reserve: room is granted, charged and named before any byte is written.
#include <algorithm>
#include <utility>

#include "common/text.h"
#include "server/directory/access.h"
#include "server/directory/batch_index.h"
#include "server/directory/context.h"
#include "server/directory/queries.h"
#include "server/policy/placement.h"

namespace berth {
namespace {

// One Reserve while it is being decided. Usage is read once and kept here as items are granted, so
// that the cost of an item does not grow with the batch.
class Granting {
 public:
  Granting(const Context& c, const Session& client, const Session& worker, const Namespace& ns)
      : c_(c), reader_{worker.id, client.name}, namespace_(ns) {
    find_pools(worker);
    namespace_free_ = quota_left();
  }

  // `head`: what the replica table answers for the key.
  StoreCode decide(const ObjectKey& key, uint32_t head, uint64_t size_bytes, PoolId& pool) {
    const uint64_t hash = hash_of(key);
    if (granted_index_.find(hash, [&](uint32_t at) { return *granted_[at] == key; }) !=
        BatchIndex::kNone)
      return StoreCode::kBeingWritten;  // twice in one batch: granted once
    if (const StoreCode have = already_there(key, head); have != StoreCode::kGranted) return have;
    need(size_bytes);
    const policy::Placement placement = policy::place(candidates_);
    if (!placement.pool.valid()) return placement.code;
    policy::Candidate& chosen =
        *std::find_if(candidates_.begin(), candidates_.end(),
                      [&](const auto& candidate) { return candidate.pool == placement.pool; });
    if (chosen.needed_bytes > namespace_free_) return StoreCode::kSkippedNamespaceQuota;
    chosen.free_bytes -= chosen.needed_bytes;
    namespace_free_ -= chosen.needed_bytes;
    pool = chosen.pool;
    granted_index_.insert(hash, static_cast<uint32_t>(granted_.size()));
    granted_.push_back(&key);
    return StoreCode::kGranted;
  }

 private:
  void need(uint64_t size_bytes) {
    if (size_bytes == needed_for_bytes_) return;
    needed_for_bytes_ = size_bytes;
    for (size_t i = 0; i < candidates_.size(); ++i)
      candidates_[i].needed_bytes = pools_[i]->pages_bytes(size_bytes);
  }

  void find_pools(const Session& worker) {
    std::vector<const Pool*> eligible;
    for (const PoolId id : c_.draft.pools_of(worker.id)) {
      const Pool* pool = c_.draft.find<Pool>(id);
      if (pool->state == PoolState::kOpen && pool->spec.tier == Tier::kL1 &&
          can_reach(*pool, reader_))
        eligible.push_back(pool);
    }
    const auto rank = [&](const Pool* pool) {
      return std::find(worker.write_order.begin(), worker.write_order.end(), pool->spec.name) -
             worker.write_order.begin();
    };
    // A write order that is given names all that may be written; without one it is the order of
    // registration.
    if (!worker.write_order.empty()) {
      std::erase_if(eligible,
                    [&](const Pool* p) { return rank(p) == std::ssize(worker.write_order); });
      std::stable_sort(eligible.begin(), eligible.end(),
                       [&](const Pool* a, const Pool* b) { return rank(a) < rank(b); });
    }
    for (const Pool* pool : eligible) {
      const auto allocated = static_cast<uint64_t>(c_.draft.pool_usage(pool->id).allocated_bytes());
      const uint64_t budget = pool->limit_bytes();
      candidates_.push_back({pool->id, budget > allocated ? budget - allocated : 0, budget, 0});
      pools_.push_back(pool);
    }
  }

  uint64_t quota_left() const {
    if (namespace_.quota_bytes == 0) return UINT64_MAX;
    const auto used =
        static_cast<uint64_t>(c_.draft.namespace_usage(namespace_.id).allocated_bytes);
    return namespace_.quota_bytes > used ? namespace_.quota_bytes - used : 0;
  }

  // READY where this writer can read it, or being written there. Another owner's private copy does
  // not count.
  StoreCode already_there(const ObjectKey& key, uint32_t head) const {
    StoreCode code = StoreCode::kGranted;
    c_.draft.each_replica(key, head, [&](const Replica& replica) {
      const Pool* pool = c_.draft.find<Pool>(replica.pool);
      if (!can_reach(*pool, reader_) || pool->state != PoolState::kOpen ||
          replica.id < namespace_.evicted_below)
        return true;
      // An imported pool whose owner is away serves nobody, so it keeps nobody from storing.
      if (pool->owner != reader_.worker && !c_.draft.is_present(pool->owner)) return true;
      if (replica.state == ReplicaState::kReady) {
        code = StoreCode::kAlreadyPresent;
        return false;
      }
      if (replica.state == ReplicaState::kReserved) code = StoreCode::kBeingWritten;
      return true;
    });
    return code;
  }

  const Context& c_;
  const Reader reader_;
  const Namespace& namespace_;
  std::vector<policy::Candidate> candidates_;
  std::vector<const Pool*> pools_;  // parallel to candidates_
  uint64_t namespace_free_ = 0;
  uint64_t needed_for_bytes_ = 0;  // the size that the candidates' needs are of
  std::vector<const ObjectKey*> granted_;
  BatchIndex granted_index_;
};

Result<> check_shape(const Context& c, const Reserve& command, const Namespace& ns) {
  if (command.keys.empty())
    return refuse(Reason::kInvalidArgument,
                  "digests is empty: a reserve names at least one object");
  if (command.keys.size() > c.config.batch_items_max)
    return refuse(Reason::kInvalidArgument, "digests holds " + std::to_string(command.keys.size()) +
                                                " items; limits.batch_items_max is " +
                                                std::to_string(c.config.batch_items_max));
  if (command.sizes.size() != 1 && command.sizes.size() != command.keys.size())
    return refuse(Reason::kInvalidArgument, "sizes has " + std::to_string(command.sizes.size()) +
                                                " elements; accepted: 1 or " +
                                                std::to_string(command.keys.size()));
  for (const uint64_t size : command.sizes)
    if (size == 0 || size > c.config.object_bytes_max)
      return refuse(Reason::kInvalidArgument, "sizes holds " + std::to_string(size) +
                                                  "; accepted: 1 to limits.object_bytes_max = " +
                                                  std::to_string(c.config.object_bytes_max));
  for (const ObjectKey& key : command.keys)
    if (key.shard >= ns.spec.shards || key.part >= ns.spec.parts)
      return refuse(Reason::kInvalidArgument, "shard " + std::to_string(key.shard) + ", part " +
                                                  std::to_string(key.part) + ": namespace \"" +
                                                  ns.spec.name + "\" has " +
                                                  std::to_string(ns.spec.shards) + " shards and " +
                                                  std::to_string(ns.spec.parts) + " parts");
  if (command.write_within > c.config.write_within_max || command.write_within < Duration{})
    return refuse(Reason::kInvalidArgument,
                  "write_deadline_ms = " + std::to_string(command.write_within.millis) +
                      "; accepted: up to " + std::to_string(c.config.write_within_max.millis));
  return {};
}

// The replicas and the range record of what was granted.
void put_reservation(const Context& c, const Reserve& command, Operation& operation,
                     std::vector<ReservedItem> items) {
  const Duration within =
      command.write_within.millis ? command.write_within : c.config.write_within_default;
  Reservation reservation;
  reservation.first = operation.first = c.draft.take_replica_ids(items.size());
  reservation.session = command.id.client;
  reservation.operation = command.id.operation;
  reservation.granted = static_cast<uint32_t>(items.size());
  reservation.write_within = within;
  reservation.deadline = c.now + within;
  reservation.items = std::move(items);
  c.draft.emit({.kind = EventKind::kReserved,
                .session = reservation.session,
                .pool = reservation.items.front().pool,
                .replica = reservation.first,
                .count = reservation.granted,
                .namespace_id = command.namespace_id});
  std::vector<Replica> replicas = replicas_of(reservation);
  c.draft.put(std::move(reservation));
  c.draft.put_together(std::move(replicas), {});
}

}  // namespace

Reserved reserved_answer(const Operation& operation) {
  return {operation.codes, operation.first, operation.pools};
}

Result<Outcome> handle(const Context& c, const Reserve& command) {
  const Result<const Session*> client = require_client(c, command.id.caller, command.id.client);
  if (!client) return tl::unexpected(client.error());
  const Result<const Operation*> known = find_operation(c, command.id, OperationKind::kReserve);
  if (!known) return tl::unexpected(known.error());
  if (*known) return reserved_answer(**known);
  const Namespace* ns = c.draft.find<Namespace>(command.namespace_id);
  if (!ns)
    return refuse(Reason::kUnknownNamespace,
                  "no namespace " + std::to_string(command.namespace_id.value()));
  if (Result<> shape = check_shape(c, command, *ns); !shape) return tl::unexpected(shape.error());

  Operation operation = new_operation(command.id, OperationKind::kReserve);
  operation.codes.reserve(command.keys.size());
  std::vector<ReservedItem> items;
  const auto skip_all = [&](StoreCode code) {
    operation.codes.assign(command.keys.size(), static_cast<uint8_t>(code));
  };
  if (!c.draft.is_present(command.id.caller.session)) {
    skip_all(StoreCode::kSkippedUnavailable);  // silent: hidden, and given nothing more
  } else if (c.draft.session_usage(command.id.client).reservations >= c.config.reservations_max) {
    skip_all(StoreCode::kSkippedSessionLimit);
  } else {
    Granting granting(c, **client, *c.draft.find<Session>(command.id.caller.session), *ns);
    std::vector<uint32_t> heads(command.keys.size());
    c.draft.base_replicas().first_slots_of(command.keys, heads);
    items.reserve(command.keys.size());
    operation.pools.reserve(command.keys.size());
    for (size_t i = 0; i < command.keys.size(); ++i) {
      const uint64_t size = command.sizes.size() == 1 ? command.sizes[0] : command.sizes[i];
      PoolId pool;
      const StoreCode code = granting.decide(command.keys[i], heads[i], size, pool);
      operation.codes.push_back(static_cast<uint8_t>(code));
      if (code != StoreCode::kGranted) continue;
      items.push_back({static_cast<uint32_t>(items.size()), command.keys[i], pool, size});
      operation.pools.push_back(pool);
    }
  }
  if (!items.empty()) put_reservation(c, command, operation, std::move(items));
  const Reserved answer = reserved_answer(operation);
  c.draft.put(std::move(operation));
  return answer;
}

}  // namespace berth
