#include "server/directory/explain.h"

#include <algorithm>
#include <iterator>

#include "common/text.h"
#include "server/directory/lookup.h"
#include "server/directory/queries.h"

namespace berth {
namespace {

struct Case {
  const Directory& directory;
  const Pool& pool;
  const ReplicaSlot& slot;
  const Reader& reader;

  const Replica& replica() const { return slot.replica; }
};

std::string counted(uint64_t count, const std::string& thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string name_of_worker(const Case& c, SessionId id) {
  const Session* session = c.directory.find<Session>(id);
  return session ? quote(session->name) : "none";
}

std::string where(const Case& c) {
  return "pool " + quote(c.pool.spec.name) + " of worker " + quote(c.pool.owner_name);
}

std::string who(const Case& c) {
  std::string text = "worker " + name_of_worker(c, c.reader.worker);
  if (!c.reader.engine.empty()) text = "engine " + quote(c.reader.engine) + " of " + text;
  return text;
}

bool is_on_its_node(const Case& c) {
  const Session* worker = c.directory.find<Session>(c.reader.worker);
  return worker && worker->node == c.pool.node;
}

std::string reach_advice(const Case& c) {
  switch (c.pool.spec.scope) {
    case Scope::kProcess:
      return where(c) + " is private to " +
             (c.pool.spec.engine.empty() ? "the first engine that joins there"
                                         : "engine " + quote(c.pool.spec.engine)) +
             "; the requester is " + who(c) + ". A copy that it can read has to be stored again.";
    case Scope::kHost:
      return where(c) + " on node " + quote(c.pool.node) + " is out of reach for " + who(c) +
             (is_on_its_node(c) ? ", which has not imported it: both need share_host_pools and the "
                                  "same runtime_directory."
                                : ".") +
             " A copy that it can read has to be stored again.";
    case Scope::kDomain:
      return where(c) + " needs access domain " + quote(c.pool.spec.access_domain) +
             ", which the requester has not proven to map.";
  }
  return "";
}

std::string writing_advice(const Case& c) {
  std::string text = "It is being written; READY when its writer commits.";
  const auto& reservations = c.directory.reservations();
  const auto after = reservations.upper_bound(c.replica().id);
  if (after == reservations.begin()) return text;
  const Session* writer = c.directory.find<Session>(std::prev(after)->second.session);
  if (writer) text += " Writer: engine " + quote(writer->name) + ".";
  return text;
}

std::string retired_because(Why why) {
  switch (why) {
    case Why::kEvicted:
      return "An operator evicted it";
    case Why::kPoolClosing:
      return "Its pool closes";
    case Why::kWriterFenced:
      return "Its writer died before the commit";
    case Why::kWriterAborted:
      return "Its writer gave it up";
    case Why::kOverQuota:
      return "It was taken back past a quota";
    case Why::kMadeRoom:
      return "The eviction policy chose it, to make room in its pool";
    case Why::kMadeRoomInNamespace:
      return "The eviction policy chose it, because its namespace was near its quota";
    case Why::kPoolDraining:
      return "An operator drains its pool";
    case Why::kNamespaceEvicted:
      return "An operator evicted its namespace";
    case Why::kPoolTrimmed:
      return "The eviction policy chose it, because an operator asked its pool to shrink";
    default:
      return "It retires (" + std::string(name_of(why)) + ")";
  }
}

std::string retiring_advice(const Case& c) {
  const uint32_t leases = c.slot.lease_count;
  std::string kept = leases > 0 ? "; " + counted(leases, "lease") + " keep" +
                                      (leases == 1 ? "s" : "") + " its bytes for their readers"
                                : std::string();
  if (c.replica().state == ReplicaState::kRetiring)
    return retired_because(c.replica().why) +
           (kept.empty() ? "; its worker has not yet acknowledged the reclaim" : kept) + ".";
  // Still READY: hidden at once, and a job retires it in a moment.
  if (c.directory.find<Pin>(c.replica().id)) kept += "; its pin does not change that";
  if (c.pool.state == PoolState::kDraining)
    return retired_because(Why::kPoolDraining) + kept +
           ". `berthctl undrain` brings back what has not retired by then.";
  if (c.pool.state != PoolState::kOpen) return retired_because(Why::kPoolClosing) + kept + ".";
  return retired_because(Why::kNamespaceEvicted) + kept + ".";
}

std::string quarantine_advice(const Case& c) {
  if (c.replica().why == Why::kWriteOverdue)
    return "Its write is overdue: the writer was asked to stop and has not answered. It stays "
           "charged until the writer answers or is proven dead.";
  return "Directory and ledger of its worker name different bytes: it is never read again. "
         "`berthctl evict` gives its room back.";
}

std::string advice_on(const Case& c, MissReason obstacle) {
  switch (obstacle) {
    case MissReason::kNone:
      return "";
    case MissReason::kNotAccessible:
      return reach_advice(c);
    case MissReason::kBeingWritten:
      return writing_advice(c);
    case MissReason::kRetiring:
      return retiring_advice(c);
    case MissReason::kQuarantined:
      return quarantine_advice(c);
    case MissReason::kOwnerSilent:
      return "Worker " + quote(c.pool.owner_name) +
             " missed its heartbeats: hidden, nothing is freed. It is a hit again with the next "
             "one.";
    case MissReason::kUnverified:
      return "Worker " + quote(c.pool.owner_name) +
             " is not attached: hidden, nothing is freed. It is a hit again when its ledger is "
             "reconciled.";
    case MissReason::kNotPresent:
      return "The worker of " + where(c) + " is dead and the copy with it.";
    default:
      return std::string(name_of(obstacle));
  }
}

}  // namespace

Explanation explain(const Directory& directory, const Namespace& ns, const Digest& digest,
                    const Reader& reader) {
  Explanation explanation;
  const ProbeAnswer answer = probe(directory, ns, {&digest, 1}, {reader});
  explanation.is_hit = !answer.classes.empty();
  explanation.miss = answer.miss;
  const ReplicaTable& table = directory.replicas();
  for (uint32_t shard = 0; shard < ns.spec.shards; ++shard)
    for (uint32_t part = 0; part < ns.spec.parts; ++part)
      for (uint32_t at = table.first_slot_of(key_of(ns, digest, shard, part));
           at != ReplicaTable::kNone; at = table.at(at).next_same_key) {
        if (explanation.copies.size() >= kExplainedCopiesMax) return explanation;
        const ReplicaSlot& slot = table.at(at);
        const Pool& pool = *directory.find<Pool>(slot.replica.pool);
        const Presence* owner = directory.find<Presence>(pool.owner);
        const MissReason why = obstacle(slot.replica, ns, pool, owner, reader);
        explanation.copies.push_back({at, why, advice_on({directory, pool, slot, reader}, why)});
      }
  return explanation;
}

}  // namespace berth
