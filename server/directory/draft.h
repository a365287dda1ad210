// A draft: what a batch of commands is about to change, over a directory that it does not touch.
// Reads see the draft's own writes. A refused command is rolled back to its savepoint; a batch that
// the store refuses is dropped whole, and memory is still exactly what is on disk.
//
//   staged_   [ m0 ][ m1 ][ m2 ] ...    every write, in order; a newer one of the same record
//                                       supersedes
//   newest_   record key ─▶ position    rolling back pops writes and restores the positions that
//                                       they superseded
//   runs_     replicas that were written together (staged_runs.h)
//
// Usage, lease counts and counts per session are kept as differences to the directory's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/directory/batch_index.h"
#include "server/directory/directory.h"
#include "server/directory/event.h"
#include "server/directory/staged_runs.h"

namespace berth {

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

  // Replicas in ascending order of their ids: new ones, or changed ones with the slots that they
  // lie in.
  void put_together(std::vector<Replica> replicas, std::vector<uint32_t> slots);
  // As forget() of each that there is. In any order.
  void forget_together(std::vector<ReplicaId> ids);

  void emit(Event event) { events_.push_back(std::move(event)); }
  void ask(Ask ask) { asks_.push_back(std::move(ask)); }
  // Must be fsynced in every durability mode but `none`: identity is given or taken away.
  void require_sync() { sync_ = true; }

  // ---- Derived, as this batch sees it ----
  PoolUsage pool_usage(PoolId id) const;
  NamespaceUsage namespace_usage(NamespaceId id) const;
  SessionUsage session_usage(SessionId id) const;
  uint32_t lease_count(ReplicaId id) const;
  // As the former, of a replica that lies in this slot.
  uint32_t lease_count(ReplicaId id, uint32_t slot) const;
  size_t pin_count() const {
    return static_cast<size_t>(static_cast<int64_t>(base_.pins().size()) + pin_count_);
  }
  bool is_present(SessionId worker) const;
  // The incarnation of the re-attach that last named the replica.
  Incarnation seen(ReplicaId id) const;

  // The replicas of an object, staged ones included. Calls visit(const Replica&) until it returns
  // false. `head` is what the replica table answers for the key.
  template <class Visit>
  void each_replica(const ObjectKey& key, Visit visit) const {
    each_replica(key, base_.replicas().first_slot_of(key), visit);
  }
  template <class Visit>
  void each_replica(const ObjectKey& key, uint32_t head, Visit visit) const;
  const ReplicaTable& base_replicas() const { return base_.replicas(); }
  // As find(), of a replica that the table has in this slot, or nowhere.
  const Replica* find_replica(ReplicaId id, uint32_t slot) const;

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
    size_t runs = 0;
    size_t events = 0;
    size_t asks = 0;
    bool sync = false;
  };
  Savepoint savepoint() const {
    return {staged_.size(), runs_.size(), events_.size(), asks_.size(), sync_};
  }
  void roll_back_to(const Savepoint& savepoint);

  // Ends the draft: each record at most once, in its final form. First what is put, kinds in the
  // order of RecordKind (a pool before the replicas in it), then what is forgotten, in the opposite
  // order.
  std::vector<Mutation> take_mutations();
  const IdCounters& counters() const { return counters_; }
  std::vector<Event> take_events() { return std::move(events_); }
  std::vector<Ask> take_asks() { return std::move(asks_); }
  bool needs_sync() const { return sync_; }
  size_t staged_count() const { return staged_.size() + runs_.size(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kKinds = static_cast<size_t>(RecordKind::kSeenLease) + 1;
  struct Staged {
    Mutation mutation;
    uint32_t previous = kNone;  // the write it supersedes
  };
  // A replica that was written, by its object key: a single write, or a new one in a run.
  struct Written {
    uint32_t run = kNone;
    uint32_t at = 0;         // in the run, or in staged_
    uint32_t older = kNone;  // of the same object key
  };
  static uint64_t hash_of_key(const RecordKey& key) {
    uint64_t h = key.first * 0x9E3779B97F4A7C15u ^ key.second * 0xD6E8FEB86659FD93u;
    h += static_cast<uint64_t>(key.kind) * 0xA24BAED4963EE407u;
    h ^= h >> 31;
    return h * 0xD6E8FEB86659FD93u;
  }

  void stage(Mutation mutation);
  bool stage_run(StagedRuns::Run& run);         // false: some were written before, so it was not
  uint32_t newest(const RecordKey& key) const;  // position of the write that counts, or kNone
  bool is_staged(RecordKind kind) const { return staged_of_kind_[static_cast<size_t>(kind)] > 0; }
  const Replica& replica_at(const Written& written) const;
  void index_by_object(Written written) const;
  void index_runs() const;
  void forget_last_written();
  void roll_back_single();
  void roll_back_run();
  void account(const StagedRuns::Run& run, int sign);
  void fold_lease_changes() const;
  void note_base(Mutation& mutation, uint32_t slot) const;
  // Adds (or takes back) what the record at `key` contributes to the derived figures, as the draft
  // sees it now.
  void account(const RecordKey& key, int sign);
  void account(const Replica& replica, int64_t count);
  void account(const Lease& lease, int sign);
  void account(const Pin& pin, int sign);
  const RecordValue* staged_value(const RecordKey& key) const;

  const Directory& base_;
  IdCounters counters_;
  std::deque<Staged> staged_;  // a deque: records handed out stay where they are
  BatchIndex newest_;          // record key ─▶ position
  std::array<uint32_t, kKinds> staged_of_kind_{};
  StagedRuns runs_;
  std::unordered_map<PoolId, PoolUsage> pool_usage_;
  std::unordered_map<NamespaceId, NamespaceUsage> namespace_usage_;
  std::unordered_map<SessionId, SessionUsage> session_usage_;
  // Made when somebody asks: most batches never do.
  mutable std::vector<Written> written_;  // in the order of the writes
  mutable BatchIndex by_object_;          // object key ─▶ newest in written_
  mutable size_t indexed_runs_ = 0;
  mutable std::vector<std::pair<const Lease*, int>> lease_changes_;  // not in lease_count_ yet
  mutable std::unordered_map<ReplicaId, int32_t> lease_count_;
  std::vector<Event> events_;
  std::vector<Ask> asks_;
  int64_t pin_count_ = 0;
  bool sync_ = false;
};

// ---- Templates
// ----------------------------------------------------------------------------------------------

template <class R>
const R* Draft::find(KeyOf<R> key) const {
  if constexpr (std::is_same_v<R, Replica>) return find_replica(key, base_.replicas().slot_of(key));
  const RecordKey record = RecordTraits<R>::key(key);
  if (is_staged(record.kind))
    if (const RecordValue* value = staged_value(record)) return record_if<R>(*value);
  return base_.find<R>(key);
}

template <class Visit>
void Draft::each_replica(const ObjectKey& key, uint32_t head, Visit visit) const {
  const ReplicaTable& table = base_.replicas();
  for (uint32_t slot = head; slot != ReplicaTable::kNone; slot = table.at(slot).next_same_key) {
    const Replica* replica = find_replica(table.at(slot).replica.id, slot);
    if (replica && !visit(*replica)) return;
  }
  if (indexed_runs_ < runs_.size()) index_runs();
  if (written_.empty()) return;
  uint32_t at = by_object_.find(
      hash_of(key), [&](uint32_t other) { return replica_at(written_[other]).key == key; });
  for (; at != kNone; at = written_[at].older) {
    const Written& written = written_[at];
    const Replica& replica = replica_at(written);
    if (table.slot_of(replica.id) != ReplicaTable::kNone) continue;  // visited above
    if (find<Replica>(replica.id) != &replica) continue;             // superseded
    if (!visit(replica)) return;
  }
}

template <class R, class Visit>
void Draft::each_staged(Visit visit) const {
  static_assert(!std::is_same_v<R, Replica>, "replicas are written in runs, too");
  if (!is_staged(RecordTraits<R>::key({}).kind)) return;
  for (size_t at = 0; at < staged_.size(); ++at)
    if (const R* record = record_if<R>(staged_[at].mutation.value))
      if (newest(staged_[at].mutation.key) == at) visit(*record);
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
