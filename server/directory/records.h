// The records of the directory: plain values. Everything durable is here; what follows from records
// (usage, indexes, lease counts) and what is soft (heartbeats, who is attached) lives in
// directory.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "common/units.h"
#include "server/directory/types.h"
#include "server/policy/eviction_kind.h"

namespace berth {

// Everything that makes KV compatible. Immutable but for the quota.
struct NamespaceSpec {
  std::string name;
  std::string application;
  std::string model;
  std::string adapter;
  std::string tokenizer;
  std::string dtype;
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  std::string storage_format;
  uint32_t storage_version = 0;
  uint32_t chunk_tokens = 0;
  uint32_t tensor_parallel = 1;
  uint32_t pipeline_parallel = 1;
  uint32_t shards = 1;
  uint32_t parts = 1;
  uint32_t digest_bytes = 0;

  friend bool operator==(const NamespaceSpec&, const NamespaceSpec&) = default;
};

struct Namespace {
  NamespaceId id;
  NamespaceSpec spec;
  Fingerprint fingerprint;
  uint64_t quota_bytes = 0;  // 0: none
  // Replicas with lower ids were evicted together: hidden at once, retired in slices.
  ReplicaId evicted_below;
};

inline ObjectKey key_of(const Namespace& ns, const Digest& digest, uint32_t shard, uint32_t part) {
  return {digest, static_cast<uint32_t>(ns.id.value()), static_cast<uint16_t>(shard),
          static_cast<uint16_t>(part)};
}

// An attached worker, or a client that joined one.
struct Session {
  SessionId id;
  Role role = Role::kWorker;
  Token token;
  Token request_token;  // of the OpenSession that made it
  std::string name;     // worker name or engine id
  std::string node;
  BootId boot_id;
  Incarnation incarnation = 1;  // workers: raised at every re-attach
  SessionId worker;             // clients: attached through; none while that worker is dead
  std::string worker_name;      // clients: survives the worker's session
  // Clients: file names of the life locks that were made for it, one a join. Each resume adds one,
  // and whether its descriptor arrived is not known here: dead is who holds none of them.
  std::vector<std::string> life_names;
  std::vector<std::string> access_domains;
  std::vector<std::string> write_order;  // workers: pool names; empty: in order of registration
  OperationNumber operation_low_water = 0;
  bool ending = false;  // closed or fenced: a job gives back what it held
  uint32_t version = 0;
  uint64_t host_memory_bytes = 0;
};

struct PoolSpec {
  std::string name;
  Medium medium = Medium::kCpu;
  Tier tier = Tier::kL1;
  Scope scope = Scope::kHost;
  std::string engine;  // kProcess: empty until claimed
  std::string access_domain;
  uint64_t capacity_bytes = 0;
  uint64_t page_bytes = 0;
  uint64_t budget_bytes = 0;  // never 0 in a record
  uint64_t backing_bytes = 0;
  uint64_t pinned_bytes = 0;

  friend bool operator==(const PoolSpec&, const PoolSpec&) = default;
};

// A HOST pool that was passed to another worker of its node. One for each time that it was passed:
// the life lock is held by every process that maps the pool through that, the importer included.
struct PoolExport {
  SessionId importer;     // none: that worker is dead, engines of it may still map the pool
  std::string worker;     // its name
  std::string life_name;  // made, and tested, by the pool's owner
  bool imported = false;  // it holds the descriptor: its engines may be told of places in the pool
  // The importer died before it had stated its leases to this run of the server, so one may be
  // lost.
  bool unsure = false;

  friend bool operator==(const PoolExport&, const PoolExport&) = default;
};

struct Pool {
  PoolId id;
  PoolSpec spec;
  SessionId owner;         // none once kGone
  std::string owner_name;  // worker name; survives the session
  std::string node;
  BootId boot_id;  // of the node when the memory was taken: another boot proves it gone
  PoolState state = PoolState::kOpen;
  std::vector<std::string> importers;  // kGone: life locks that must be proven free first
  std::vector<PoolExport> exports;

  // Most that may be granted at once.
  uint64_t limit_bytes() const { return std::min(spec.budget_bytes, spec.capacity_bytes); }
  uint64_t pages_bytes(uint64_t size_bytes) const {
    return (size_bytes + spec.page_bytes - 1) / spec.page_bytes * spec.page_bytes;
  }
};

// One physical copy of one object in one pool.
struct Replica {
  ReplicaId id;
  ObjectKey key;
  PoolId pool;
  uint64_t offset = 0;  // meaningful once committed
  uint64_t size_bytes = 0;
  ReplicaState state = ReplicaState::kReserved;
  Why why = Why::kNone;
  bool in_reservation = false;  // still part of an open Reservation, whose record is its record
};

// The granted items of one Reserve that are still open. On disk it is one range record, and the
// replicas of its items are made again from it; in memory each item is a Replica in state kReserved
// (or kQuarantined, overdue).
struct ReservedItem {
  uint32_t index = 0;  // its replica is first + index
  ObjectKey key;
  PoolId pool;
  uint64_t size_bytes = 0;
};
struct Reservation {
  ReplicaId first;
  SessionId session;
  OperationNumber operation = 0;
  uint32_t granted = 0;  // length of the id range; closed items leave holes
  Time deadline;
  Duration write_within;
  bool quarantined = false;
  std::vector<ReservedItem> items;  // open ones, by index

  bool covers(ReplicaId id) const { return first <= id && id.value() < first.value() + granted; }
  ReplicaId replica_of(const ReservedItem& item) const {
    return ReplicaId(first.value() + item.index);
  }
};

// Read protection on a set of replicas, taken in one atomic acquire. A replica that is proven gone
// with its memory may be named here until the lease ends; ids are never reused, so that is
// harmless.
struct Lease {
  LeaseId id;
  SessionId session;
  OperationNumber operation = 0;
  Time taken;
  Duration ttl;
  Time expires;
  bool revoking = false;  // over age: the holder was asked to stop
  std::vector<ReplicaId> replicas;
};

enum class OperationKind : uint8_t { kReserve = 1, kCommit = 2, kAcquire = 3 };

// The stored answer of one numbered operation, until the session's low-water mark passes it.
struct Operation {
  SessionId session;
  OperationNumber number = 0;
  OperationKind kind = OperationKind::kReserve;
  uint64_t content_hash = 0;
  std::vector<uint8_t> codes;  // StoreCode, CommitCode or ChunkClass per item
  ReplicaId first;             // kReserve
  std::vector<PoolId> pools;   // kReserve: of granted items
  LeaseId lease;               // kAcquire
  MissReason miss = MissReason::kNone;
};

enum class JobKind : uint8_t {
  kDropPool = 1,    // the pool's memory is proven gone (or unreachable for ever): drop its replicas
  kEndSession = 2,  // give back what a closed or fenced session held, then forget it
  kClosePool = 3,   // drained close: retire every READY replica
  kDrainPool = 4,   // the same for a pool that stays; ends when it is empty
  kEvictNamespace = 5,  // retire every replica of a namespace below its `evicted_below`
  kTrimPool = 6,        // a policy retires replicas of a pool until `target_bytes` are left
};
// Long work: durable, cut into slices, its effect on visibility immediate.
struct Job {
  JobId id;
  JobKind kind = JobKind::kDropPool;
  PoolId pool;
  SessionId session;
  NamespaceId namespace_id;
  uint64_t target_bytes = 0;
  uint64_t cursor = 0;
  uint64_t done = 0;
};

// A copy that no policy may evict. Forgotten with its replica.
struct Pin {
  ReplicaId replica;
  PinKind kind = PinKind::kSoft;
  Time expires;  // soft ones

  bool holds_at(Time now) const { return kind == PinKind::kHard || expires > now; }
};

// How pools make room. One for all pools; absent until an operator sets it, then instead of the
// configuration's.
struct EvictionSetting {
  policy::EvictionKind kind = policy::EvictionKind::kAdaptive;
  uint32_t high_permille = 900;
  uint32_t low_permille = 800;

  uint64_t high_of(uint64_t limit_bytes) const { return share_of(limit_bytes, high_permille); }
  uint64_t low_of(uint64_t limit_bytes) const { return share_of(limit_bytes, low_permille); }
  bool is_valid() const {
    return low_permille > 0 && low_permille < high_permille && high_permille <= 1000;
  }
  friend bool operator==(const EvictionSetting&, const EvictionSetting&) = default;
};

}  // namespace berth
