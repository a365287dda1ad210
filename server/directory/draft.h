// A draft: what a batch of commands is about to change, over a directory that it does not touch.
// Reads see the draft's own writes. A refused command is rolled back to its savepoint; a batch that
// the store refuses is dropped whole, and memory is still exactly what is on disk.
//
//   staged_   [ m0 ][ m1 ][ m2 ] ...      every write, in order; a newer one of the same record
//   supersedes newest_   record key ─▶ position      rolling back pops writes and restores the
//   positions they superseded
//
// Usage, lease counts and counts per session are kept as differences to the directory's.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "server/directory/directory.h"
#include "server/directory/event.h"

namespace berth {

struct RecordKeyHash {
  size_t operator()(const RecordKey& key) const noexcept {
    uint64_t h = key.first * 0x9E3779B97F4A7C15u ^ key.second * 0xD6E8FEB86659FD93u;
    h += static_cast<uint64_t>(key.kind) * 0xA24BAED4963EE407u;
    return static_cast<size_t>(h ^ (h >> 31));
  }
};

class Draft {
 public:
  explicit Draft(const Directory& base) : base_(base), counters_(base.counters()) {}

  const Directory& base() const { return base_; }

  // The record as this batch sees it, or nullptr. Stays valid until the draft ends or is rolled
  // back.
  template <class R>
  const R* find(KeyOf<R> key) const;
  const Meta& meta() const { return *find<Meta>({}); }

  template <class R>
  void put(R record) {
    stage(put_of(std::move(record)));
  }
  // With a replica its pin goes.
  template <class R>
  void forget(KeyOf<R> key) {
    if constexpr (std::is_same_v<R, Replica>)
      if (find<Pin>(key)) stage(Mutation{RecordTraits<Pin>::key(key), Forgotten{}});
    stage(Mutation{RecordTraits<R>::key(key), Forgotten{}});
  }

  void emit(Event event) { events_.push_back(std::move(event)); }
  void ask(Ask ask) { asks_.push_back(std::move(ask)); }
  // Must be fsynced in every durability mode but `none`: identity is given or taken away.
  void require_sync() { sync_ = true; }

  // ---- Derived, as this batch sees it ----
  PoolUsage pool_usage(PoolId id) const;
  NamespaceUsage namespace_usage(NamespaceId id) const;
  SessionUsage session_usage(SessionId id) const;
  uint32_t lease_count(ReplicaId id) const;
  size_t pin_count() const {
    return static_cast<size_t>(static_cast<int64_t>(base_.pins().size()) + pin_count_);
  }
  bool is_present(SessionId worker) const;
  // The incarnation of the re-attach that last named the replica.
  Incarnation seen(ReplicaId id) const;

  // The replicas of an object, staged ones included. Calls visit(const Replica&) until it returns
  // false.
  template <class Visit>
  void each_replica(const ObjectKey& key, Visit visit) const;

  // Records of one kind that this draft staged (newest form, not forgotten), beside those of the
  // directory.
  template <class R, class Visit>
  void each_staged(Visit visit) const;

  // The directory's pools of an owner and clients of a worker, those staged in this batch included.
  std::vector<PoolId> pools_of(SessionId owner) const;
  std::vector<SessionId> clients_of(SessionId worker) const;
  const Namespace* namespace_by_name(const std::string& name) const;
  SessionId worker_by_name(const std::string& name) const;

  // ---- Fresh ids, consecutive; never given back, also not by a roll-back ----
  ReplicaId take_replica_ids(uint64_t count);
  template <class IdType>
  IdType take_id();

  // ---- Roll-back and the end of a batch ----
  struct Savepoint {
    size_t staged = 0;
    size_t events = 0;
    size_t asks = 0;
    bool sync = false;
  };
  Savepoint savepoint() const { return {staged_.size(), events_.size(), asks_.size(), sync_}; }
  void roll_back_to(const Savepoint& savepoint);

  // Ends the draft: each record at most once, in its final form. First what is put, kinds in the
  // order of RecordKind (a pool before the replicas in it), then what is forgotten, in the opposite
  // order.
  std::vector<Mutation> take_mutations();
  const IdCounters& counters() const { return counters_; }
  const std::vector<Event>& events() const { return events_; }
  const std::vector<Ask>& asks() const { return asks_; }
  bool needs_sync() const { return sync_; }
  size_t staged_count() const { return staged_.size(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Staged {
    Mutation mutation;
    uint32_t previous = kNone;       // the write it supersedes
    uint32_t next_same_key = kNone;  // replicas: older staged replica of the same object key
  };
  struct ObjectKeyHash {
    size_t operator()(const ObjectKey& key) const noexcept {
      return static_cast<size_t>(hash_of(key));
    }
  };

  void stage(Mutation mutation);
  // Adds (or takes back) what the record at `key` contributes to the derived figures, as the draft
  // sees it now.
  void account(const RecordKey& key, int sign);
  void account(const Replica& replica, int sign);
  void account(const Lease& lease, int sign);
  void account(const Pin& pin, int sign);
  const RecordValue* staged_value(const RecordKey& key) const;

  const Directory& base_;
  IdCounters counters_;
  std::deque<Staged> staged_;  // a deque: records handed out stay where they are
  std::unordered_map<RecordKey, uint32_t, RecordKeyHash> newest_;
  std::unordered_map<ObjectKey, uint32_t, ObjectKeyHash> newest_by_object_;
  std::unordered_map<PoolId, PoolUsage> pool_usage_;
  std::unordered_map<NamespaceId, NamespaceUsage> namespace_usage_;
  std::unordered_map<SessionId, SessionUsage> session_usage_;
  std::unordered_map<ReplicaId, int32_t> lease_count_;
  std::vector<Event> events_;
  std::vector<Ask> asks_;
  int64_t pin_count_ = 0;
  bool sync_ = false;
};

// ---- Templates
// ----------------------------------------------------------------------------------------------

template <class R>
const R* Draft::find(KeyOf<R> key) const {
  if (!newest_.empty())
    if (const RecordValue* value = staged_value(RecordTraits<R>::key(key)))
      return std::get_if<R>(value);
  return base_.find<R>(key);
}

template <class Visit>
void Draft::each_replica(const ObjectKey& key, Visit visit) const {
  for (uint32_t slot = base_.replicas().first_slot_of(key); slot != ReplicaTable::kNone;
       slot = base_.replicas().at(slot).next_same_key) {
    const Replica* replica = find<Replica>(base_.replicas().at(slot).replica.id);
    if (replica && !visit(*replica)) return;
  }
  const auto it = newest_by_object_.find(key);
  if (it == newest_by_object_.end()) return;
  for (uint32_t at = it->second; at != kNone; at = staged_[at].next_same_key) {
    const Replica& staged = std::get<Replica>(staged_[at].mutation.value);
    if (base_.replicas().slot_of(staged.id) != ReplicaTable::kNone) continue;  // visited above
    if (newest_.at(staged_[at].mutation.key) != at) continue;                  // superseded
    if (!visit(staged)) return;
  }
}

template <class R, class Visit>
void Draft::each_staged(Visit visit) const {
  for (size_t at = 0; at < staged_.size(); ++at)
    if (const R* record = std::get_if<R>(&staged_[at].mutation.value))
      if (newest_.at(staged_[at].mutation.key) == at) visit(*record);
}

template <class IdType>
IdType Draft::take_id() {
  uint64_t* counter = nullptr;
  if constexpr (std::is_same_v<IdType, SessionId>)
    counter = &counters_.session;
  else if constexpr (std::is_same_v<IdType, PoolId>)
    counter = &counters_.pool;
  else if constexpr (std::is_same_v<IdType, LeaseId>)
    counter = &counters_.lease;
  else {
    static_assert(std::is_same_v<IdType, JobId>, "replica ids are taken in runs");
    counter = &counters_.job;
  }
  return make_id<IdType>(meta().epoch, ++*counter);
}

}  // namespace berth
