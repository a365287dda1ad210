// Handlers of pins: copies that no policy may evict. A pin keeps a choice from being made; it never
// keeps memory from being drained, fenced or proven gone.
#include "common/text.h"
#include "server/directory/chunks.h"
#include "server/directory/context.h"

namespace berth {
namespace {

// All hard pins of a pool stay under its low watermark, or its policy could not make room.
bool has_room(const Context& c, const Replica& replica, PinKind kind) {
  const Pin* pin = c.draft.find<Pin>(replica.id);
  if (!pin && c.draft.pin_count() >= c.config.pins_max) return false;
  if (kind != PinKind::kHard || (pin && pin->kind == PinKind::kHard)) return true;
  const Pool& pool = *c.draft.find<Pool>(replica.pool);
  const auto pinned = static_cast<uint64_t>(c.draft.pool_usage(pool.id).hard_pin_bytes);
  return pinned + pool.pages_bytes(replica.size_bytes) <=
         eviction_in_force(c.draft, c.config).low_of(pool.limit_bytes());
}

// All or none of a chunk's copies: half a chunk is of no use to anybody.
PinCode pin_chunk(const Context& c, const std::vector<ReplicaId>& copies, PinKind kind,
                  Time expires) {
  const Draft::Savepoint before = c.draft.savepoint();
  PinCode code = PinCode::kNotPresent;
  for (const ReplicaId id : copies) {
    const Replica& replica = *c.draft.find<Replica>(id);
    if (replica.state != ReplicaState::kReady) continue;
    if (!has_room(c, replica, kind)) {
      c.draft.roll_back_to(before);
      return PinCode::kNoRoom;
    }
    c.draft.put(Pin{id, kind, kind == PinKind::kSoft ? expires : Time{}});
    code = PinCode::kPinned;
  }
  return code;
}

}  // namespace

Result<Outcome> handle(const Context& c, const PinChunks& command) {
  const Result<const Namespace*> ns = chunks_of(c, command.namespace_name, command.digests.size());
  if (!ns) return tl::unexpected(ns.error());
  if (command.ttl < Duration{} || command.ttl > c.config.pin_ttl_max)
    return refuse(Reason::kInvalidArgument, "ttl_ms = " + std::to_string(command.ttl.millis) +
                                                "; accepted: up to " +
                                                std::to_string(c.config.pin_ttl_max.millis));
  const Time expires = c.now + (command.ttl.millis ? command.ttl : c.config.pin_ttl_default);
  PerItem answer;
  uint64_t pinned = 0;
  for (const Digest& digest : command.digests) {
    const PinCode code = pin_chunk(c, copies_of(c, **ns, digest), command.kind, expires);
    pinned += code == PinCode::kPinned;
    answer.done.push_back(static_cast<uint8_t>(code));
  }
  if (pinned > 0) {
    c.draft.require_sync();
    c.draft.emit({.kind = EventKind::kPinned,
                  .count = pinned,
                  .namespace_id = (*ns)->id,
                  .reason = std::string(name_of(command.kind))});
  }
  return answer;
}

Result<Outcome> handle(const Context& c, const UnpinChunks& command) {
  const Result<const Namespace*> ns = chunks_of(c, command.namespace_name, command.digests.size());
  if (!ns) return tl::unexpected(ns.error());
  PerItem answer;
  uint64_t unpinned = 0;
  for (const Digest& digest : command.digests) {
    bool was_pinned = false;
    for (const ReplicaId id : copies_of(c, **ns, digest)) {
      if (!c.draft.find<Pin>(id)) continue;
      c.draft.forget<Pin>(id);
      was_pinned = true;
    }
    unpinned += was_pinned;
    answer.done.push_back(was_pinned);
  }
  if (unpinned > 0)
    c.draft.emit({.kind = EventKind::kUnpinned, .count = unpinned, .namespace_id = (*ns)->id});
  return answer;
}

}  // namespace berth
