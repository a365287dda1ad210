// What the directory can be told, and what it answers. Plain values: server/rpc translates the
// protocol into them.
//
// An ordinary "no" (skipped, miss, unknown) is a code in the outcome, per item; an Error is for a
// command that makes no sense, and such a command changes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "server/directory/mutation.h"
#include "server/directory/records.h"

namespace berth {

// The worker that speaks, and under which of its incarnations. Its token was checked at the door.
struct Caller {
  SessionId session;
  Incarnation incarnation = 0;
};

// A numbered operation of a client session: done once, its answer repeated.
struct Numbered {
  Caller caller;
  SessionId client;
  OperationNumber operation = 0;
  uint64_t content_hash = 0;
};

// Which session must be able to read a shard.
struct Target {
  uint16_t shard = 0;
  SessionId session;
};

// ---- The server itself
// ------------------------------------------------------------------------------------ First
// command of every run: raises the epoch. `store_id` is used when the store is new.
struct Restart {
  StoreId store_id;
  bool replace =
      false;  // the store is a copy or a restored backup: it takes the new id, its epoch goes on
};
struct Restarted {
  StoreId store_id;
  Epoch epoch = 0;
  bool is_new = false;
};

// ---- Namespaces
// -------------------------------------------------------------------------------------------
struct OpenNamespace {
  NamespaceSpec spec;  // with defaults filled in
  Fingerprint fingerprint;
};
struct NamespaceOpened {
  NamespaceId id;
};
struct SetNamespaceQuota {
  std::string name;
  uint64_t quota_bytes = 0;
};
struct Done {};

// ---- Sessions
// ---------------------------------------------------------------------------------------------
struct ClientLeft {  // one for each life lock that may be held
  SessionId session;
  std::string engine_id;
  std::string life_name;
};
struct OrphanPool {
  PoolId pool;
  std::string name;
  uint64_t backing_bytes = 0;
  std::vector<std::string> importers;
};
struct OpenWorker {
  Token request_token;
  Token token;  // fresh chance, comes in with the command
  std::string name;
  std::string node;
  BootId boot_id;
  bool life_lock_held = false;
  Epoch epoch_seen = 0;
  StoreId store_id_seen;
  uint64_t host_memory_bytes = 0;
  std::vector<std::string> access_domains;
  std::vector<std::string> write_order;
  uint32_t version = 0;
  SessionId proven_at;  // the sender was told of this session and then took its proof
};
struct WorkerOpened {
  SessionId session;
  Token token;
  Incarnation incarnation = 0;
  std::vector<ClientLeft> predecessor_clients;
  std::vector<OrphanPool> orphan_pools;
  uint32_t version = 0;  // of the protocol, in force
  // Valid: nothing was opened. The newest session that would be fenced, to be told with the proof.
  SessionId prove_again;
};
struct OpenClient {
  Caller caller;
  Token request_token;
  Token token;
  std::string engine_id;
  std::string life_name;
  SessionId resume_session;
  Token resume_token;
  uint32_t version = 0;
};
struct ClientOpened {
  SessionId session;
  Token token;
  OperationNumber operation_low_water = 0;
  uint32_t version = 0;
};
struct CloseSession {
  Caller caller;
  SessionId client;  // none: the caller itself
};
struct FenceClient {
  Caller caller;
  SessionId client;
};
struct FenceByOperator {
  SessionId session;
  std::string node;
  std::string reason;
  bool confirm_unmapped = false;
};
struct Fenced {
  std::vector<SessionId> sessions;
};
struct ReleaseOrphans {
  Caller caller;
  std::vector<PoolId> pools;
};
struct LinkUp {
  Caller caller;
};
struct LinkDown {
  SessionId session;
  Incarnation incarnation = 0;
};
struct Heartbeat {
  Caller caller;
  std::vector<PoolReport> pools;
  std::vector<std::pair<SessionId, OperationNumber>> low_water;
};

// ---- Re-attach
// --------------------------------------------------------------------------------------------
struct BeginReattach {
  SessionId session;
  BootId boot_id;
  Epoch epoch_seen = 0;
  StoreId store_id_seen;
};
struct ReattachBegun {
  Incarnation incarnation = 0;
  std::vector<ClientLeft> clients;
  bool foreign_store = false;
};
enum class LedgerState : uint8_t {
  kWriting = 1,
  kWritten = 2,
  kSealed = 3,
  kReclaimed = 4,
  kQuarantined = 5
};
enum class LedgerVerdict : uint8_t {
  kKeep = 1,
  kFree = 2,
  kReclaim = 3,
  kAdopted = 4,
  kQuarantine = 5
};
struct LedgerRow {
  ReplicaId replica;
  Digest digest;
  uint16_t shard = 0;
  uint16_t part = 0;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  LedgerState state = LedgerState::kWriting;
};
struct HeldLease {
  LeaseId lease;
  SessionId client;
  OperationNumber operation = 0;
  std::vector<ReplicaId> replicas;
};
struct ReconcileChunk {
  Caller caller;
  bool foreign_store = false;
  PoolId pool;
  Fingerprint namespace_fingerprint;
  std::vector<LedgerRow> rows;
  std::vector<HeldLease> leases;
};
struct ChunkReconciled {
  std::vector<LedgerVerdict> verdicts;
};
// Repeated by the caller until `more` is false: what the ledger lacks is dropped in slices.
struct EndReattach {
  Caller caller;
  std::vector<SessionId> clients;
};
struct ReattachEnded {
  bool more = false;
  uint64_t dropped = 0;
};

// ---- Pools
// ------------------------------------------------------------------------------------------------
struct RegisterPool {
  Caller caller;
  PoolSpec spec;
};
struct PoolRegistered {
  PoolId pool;
};
struct ClosePool {
  Caller caller;
  PoolId pool;
};
struct PoolClosing {
  uint64_t replicas_left = 0;
};

// ---- Sharing between workers of a node
// ------------------------------------------------------------------------------------
struct ExportPool {  // the owner's: before a descriptor leaves
  Caller caller;
  PoolId pool;
  SessionId importer;
  std::string life_name;
};
struct ImportPool {  // the importer's: it holds the descriptor
  Caller caller;
  PoolId pool;
  std::string life_name;
};
struct EndExports {  // the owner's: these life locks are free
  Caller caller;
  PoolId pool;
  std::vector<std::string> life_names;
};

// ---- Objects
// ----------------------------------------------------------------------------------------------
struct Reserve {
  Numbered id;
  NamespaceId namespace_id;
  std::vector<ObjectKey> keys;
  std::vector<uint64_t> sizes;  // one per key, or one for all
  Duration write_within;        // zero: the default
};
struct Reserved {
  std::vector<uint8_t> codes;  // StoreCode
  ReplicaId first;
  std::vector<PoolId> pools;
};
struct Commit {
  Numbered id;
  std::vector<ReplicaId> replicas;
  std::vector<uint64_t> offsets;
  // Hints for eviction; they change no record. Index of each item in its prompt's chain of chunks;
  // empty: not known.
  std::vector<uint32_t> positions;
  bool ends_chain = false;  // the item of the highest position is its prompt's last chunk
};
struct Committed {
  std::vector<uint8_t> codes;  // CommitCode
};
struct Abort {
  Caller caller;
  SessionId client;
  std::vector<ReplicaId> replicas;
};
struct PerItem {
  std::vector<uint8_t> done;  // 1 done now, 0 not
};
// ---- Eviction
// ---------------------------------------------------------------------------------------------
enum class EvictCode : uint8_t { kNothing = 0, kRetired = 1, kPinned = 2 };
// PerItem of EvictCode, for these two. Leases keep what they protect until they end.
struct Evict {
  std::vector<ReplicaId> replicas;
};
struct EvictChunks {  // every copy of every shard and part
  std::string namespace_name;
  std::vector<Digest> digests;
};
// The sequencer's own: what a policy chose. Only what nobody reads and no pin keeps. PerItem: 1 it
// retires.
struct MakeRoom {
  PoolId pool;
  std::vector<ReplicaId> replicas;
  Why why = Why::kMadeRoom;
  JobId job;  // kTrimPool: counted there; nothing found to retire ends it
};
// Everything of a namespace, pins included, but what is stored from now on: hidden at once.
struct EvictNamespace {
  std::string name;
};
// A policy retires replicas until at most this much is left.
struct TrimPool {
  PoolId pool;
  uint64_t target_bytes = 0;
};
struct JobStarted {
  JobId job;
};
// A pool, or every pool of a worker: hidden at once, given no more grants, emptied in slices.
struct Drain {
  PoolId pool;
  SessionId worker;
};
// Back into use. What was retired stays retired.
struct Undrain {
  PoolId pool;
  SessionId worker;
};
struct Draining {
  std::vector<PoolId> pools;
  uint64_t replicas_left = 0;
};
enum class PinCode : uint8_t { kNotPresent = 0, kPinned = 1, kNoRoom = 2 };
struct PinChunks {  // every READY copy of every shard and part; PerItem of PinCode
  std::string namespace_name;
  std::vector<Digest> digests;
  PinKind kind = PinKind::kSoft;
  Duration ttl;  // soft; zero: the default
};
struct UnpinChunks {  // PerItem: 1 a pin was taken off
  std::string namespace_name;
  std::vector<Digest> digests;
};
struct SetEviction {
  bool reset = false;  // back to the configuration's
  EvictionSetting setting;
  // What keeps what is in force when this is decided: a watermark of zero, and the kind when asked.
  bool keep_kind = false;
};

struct ReclaimAck {
  Caller caller;
  std::vector<ReplicaId> replicas;
};

// ---- Leases
// -----------------------------------------------------------------------------------------------
struct Acquire {
  Numbered id;
  NamespaceId namespace_id;
  std::vector<Digest> digests;
  std::vector<Target> targets;
  Duration ttl;  // zero: the default
};
struct Acquired {
  LeaseId lease;
  std::vector<uint8_t> classes;  // ChunkClass, one a protected chunk
  std::vector<Replica> replicas;
  MissReason miss = MissReason::kNone;
};
struct Renew {
  Caller caller;
  SessionId client;
  std::vector<LeaseId> leases;
  Duration ttl;
};
struct Release {
  Caller caller;
  SessionId client;
  std::vector<LeaseId> leases;
};

// ---- Time and long work
// -----------------------------------------------------------------------------------
struct Tick {};
struct Ticked {
  bool more = false;  // there is more due than one slice may hold
};
struct RunJob {
  JobId job;
};
struct JobRan {
  bool more = false;
};

using Command =
    std::variant<Restart, OpenNamespace, SetNamespaceQuota, OpenWorker, OpenClient, CloseSession,
                 FenceClient, FenceByOperator, ReleaseOrphans, LinkUp, LinkDown, Heartbeat,
                 BeginReattach, ReconcileChunk, EndReattach, RegisterPool, ClosePool, ExportPool,
                 ImportPool, EndExports, Reserve, Commit, Abort, Evict, EvictChunks, MakeRoom,
                 EvictNamespace, TrimPool, Drain, Undrain, PinChunks, UnpinChunks, SetEviction,
                 ReclaimAck, Acquire, Renew, Release, Tick, RunJob>;
using Outcome =
    std::variant<Done, Restarted, NamespaceOpened, WorkerOpened, ClientOpened, Fenced,
                 ReattachBegun, ChunkReconciled, ReattachEnded, PoolRegistered, PoolClosing,
                 JobStarted, Draining, Reserved, Committed, PerItem, Acquired, Ticked, JobRan>;

}  // namespace berth
