// The directory: which replica of which object lies in which pool, what it is charged, and who is
// reading it.
//
// Pure: no I/O, clock, randomness or logging. What apply() (apply.h) decides depends only on the
// records, the command and `now`, so the same commands always build the same directory. Only
// install() changes a record: after a commit, and in recovery. Readers on other threads hold the
// sequencer's view lock; the writer takes it only around install().
//
// Besides the records it keeps what follows from them (usage, indexes, counts), updated in
// install() and compared with the records by check_invariants(), and what is soft (who is
// attached), which starts empty after every restart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/time.h"
#include "server/directory/mutation.h"
#include "server/directory/records.h"
#include "server/directory/replica_table.h"
#include "server/directory/usage.h"

namespace berth {

// Counters that new ids are taken from, under the present epoch.
struct IdCounters {
  uint64_t replica = 0;
  uint64_t session = 0;
  uint64_t pool = 0;
  uint64_t lease = 0;
  uint64_t job = 0;
};

// A pool with what follows from it.
struct PoolEntry {
  Pool pool;
  PoolUsage usage;
  uint32_t head = ReplicaTable::kNone;  // list of its replicas
  std::set<ReplicaId> retiring;  // replicas in RETIRING, so that reclaims can be asked for again
  int64_t leased_replicas = 0;
};

class Directory {
 public:
  // Applies committed mutations, each record at most once, in order.
  void install(const std::vector<Mutation>& mutations);
  void set_counters(const IdCounters& counters) { counters_ = counters; }

  // The record, or nullptr. Valid until the next install.
  template <class R>
  const R* find(KeyOf<R> key) const;

  const Meta& meta() const { return meta_; }
  const IdCounters& counters() const { return counters_; }
  const ReplicaTable& replicas() const { return replicas_; }
  const std::map<NamespaceId, Namespace>& namespaces() const { return namespaces_; }
  const std::map<SessionId, Session>& sessions() const { return sessions_; }
  const std::map<PoolId, PoolEntry>& pools() const { return pools_; }
  const std::map<ReplicaId, Reservation>& reservations() const { return reservations_; }
  const std::map<LeaseId, Lease>& leases() const { return leases_; }
  const std::map<OperationKey, Operation>& operations() const { return operations_; }
  const std::map<JobId, Job>& jobs() const { return jobs_; }
  const std::map<ReplicaId, Pin>& pins() const { return pins_; }

  const std::map<SessionId, Presence>& presence() const { return presence_; }

  // Where the replica of this mutation lies, or ReplicaTable::kNone. Mostly the mutation knows.
  uint32_t slot_of(const Mutation& mutation) const;
  const PoolEntry* find_pool(PoolId id) const;
  NamespaceUsage namespace_usage(NamespaceId id) const;
  SessionUsage session_usage(SessionId id) const;
  uint32_t lease_count(ReplicaId id) const;
  size_t unknown_leased_count() const { return leases_of_unknown_.size(); }

  const Namespace* namespace_by_name(const std::string& name) const;
  const Namespace* namespace_by_fingerprint(const Fingerprint& fingerprint) const;
  SessionId worker_by_name(const std::string& name) const;
  std::vector<PoolId> pools_of(SessionId owner) const;
  std::vector<SessionId> clients_of(SessionId worker) const;

  // In order of deadline; what is due by `now` is at the front.
  const std::set<std::pair<Time, ReplicaId>>& reservation_deadlines() const {
    return reservation_deadlines_;
  }
  const std::set<std::pair<Time, LeaseId>>& lease_deadlines() const { return lease_deadlines_; }
  const std::set<std::pair<Time, ReplicaId>>& pin_deadlines() const { return pin_deadlines_; }
  const std::set<std::pair<SessionId, ReplicaId>>& reservations_by_session() const {
    return reservations_by_session_;
  }
  const std::set<std::pair<SessionId, LeaseId>>& leases_by_session() const {
    return leases_by_session_;
  }

  // Attached, its ledger reconciled and its heartbeats in time: its pools may be read and written.
  bool is_present(SessionId worker) const;

 private:
  void install(const Mutation& mutation);
  void install_replicas(std::span<const Mutation> puts);
  void forget_replicas(std::span<const Mutation> forgets);
  void change(const Meta& m) { meta_ = m; }
  void change(const Namespace& n);
  void change(const Session& s);
  void change(const Pool& p);
  void change(const Reservation& r);
  void change(const Lease& l);
  void change(const Operation& o);
  void change(const Job& j) { jobs_[j.id] = j; }
  void change(const Pin& p);
  void change(const EvictionSetting& s) { eviction_setting_ = s; }
  void change(const Presence& p) { presence_[p.session] = p; }
  void change(const PoolReport& r) { reports_[r.pool] = r; }
  void change(const SeenReplica& s);
  void change(const SeenLease& s) { seen_leases_[s.lease] = s; }

  void forget(const RecordKey& key);
  void forget_namespace(NamespaceId id);
  void forget_session(SessionId id);
  void forget_pool(PoolId id);
  void forget_reservation(ReplicaId first);
  void forget_lease(LeaseId id);
  void forget_operation(OperationKey key);
  void forget_pin(ReplicaId id);

  void account(const Pin& pin, int sign);
  void account(const Replica& replica, int64_t count);
  void insert_replica(const Replica& replica, PoolEntry& entry);
  void count_lease(const Lease& lease, int sign);
  void count_lease_of_unknown(ReplicaId id, int sign);
  PoolEntry& pool_entry(PoolId id);

  Meta meta_;
  IdCounters counters_;
  ReplicaTable replicas_;
  std::map<NamespaceId, Namespace> namespaces_;
  std::map<SessionId, Session> sessions_;
  std::map<PoolId, PoolEntry> pools_;
  std::map<ReplicaId, Reservation> reservations_;
  std::map<LeaseId, Lease> leases_;
  std::map<OperationKey, Operation> operations_;
  std::map<JobId, Job> jobs_;
  std::map<ReplicaId, Pin> pins_;
  std::optional<EvictionSetting> eviction_setting_;
  std::map<SessionId, Presence> presence_;
  std::map<PoolId, PoolReport> reports_;
  std::map<LeaseId, SeenLease> seen_leases_;
  // Leases on replicas that are not known: gone with their memory, or of a pool whose owner has not
  // re-attached since a power cut. They count again when the replica is adopted.
  std::unordered_map<ReplicaId, uint32_t> leases_of_unknown_;

  std::map<NamespaceId, NamespaceUsage> namespace_usage_;
  std::map<SessionId, SessionUsage> session_usage_;
  std::map<std::string, NamespaceId> namespace_names_;
  std::map<Fingerprint, NamespaceId> namespace_fingerprints_;
  std::map<std::string, SessionId> worker_names_;
  std::set<std::pair<SessionId, PoolId>> pools_by_owner_;
  std::set<std::pair<SessionId, SessionId>> clients_by_worker_;
  std::set<std::pair<SessionId, ReplicaId>> reservations_by_session_;
  std::set<std::pair<SessionId, LeaseId>> leases_by_session_;
  std::set<std::pair<Time, ReplicaId>> reservation_deadlines_;
  std::set<std::pair<Time, LeaseId>> lease_deadlines_;
  std::set<std::pair<Time, ReplicaId>> pin_deadlines_;  // soft ones
};

template <class R>
const R* Directory::find(KeyOf<R> key) const {
  const auto in = [&](const auto& table) -> const R* {
    const auto it = table.find(key);
    return it == table.end() ? nullptr : &it->second;
  };
  if constexpr (std::is_same_v<R, Meta>)
    return &meta_;
  else if constexpr (std::is_same_v<R, Namespace>)
    return in(namespaces_);
  else if constexpr (std::is_same_v<R, Session>)
    return in(sessions_);
  else if constexpr (std::is_same_v<R, Reservation>)
    return in(reservations_);
  else if constexpr (std::is_same_v<R, Lease>)
    return in(leases_);
  else if constexpr (std::is_same_v<R, Operation>)
    return in(operations_);
  else if constexpr (std::is_same_v<R, Job>)
    return in(jobs_);
  else if constexpr (std::is_same_v<R, Pin>)
    return in(pins_);
  else if constexpr (std::is_same_v<R, EvictionSetting>)
    return eviction_setting_ ? &*eviction_setting_ : nullptr;
  else if constexpr (std::is_same_v<R, Presence>)
    return in(presence_);
  else if constexpr (std::is_same_v<R, PoolReport>)
    return in(reports_);
  else if constexpr (std::is_same_v<R, SeenLease>)
    return in(seen_leases_);
  else if constexpr (std::is_same_v<R, Pool>) {
    const PoolEntry* entry = find_pool(key);
    return entry ? &entry->pool : nullptr;
  } else {
    static_assert(std::is_same_v<R, Replica>, "SeenReplica is a mark in the replica's slot");
    const uint32_t slot = replicas_.slot_of(key);
    return slot == ReplicaTable::kNone ? nullptr : &replicas_.at(slot).replica;
  }
}

}  // namespace berth
