// What the agent remembers, as plain values: clients and their operations, requests on their way to
// berthd, pools, and what a dead predecessor left. Internal to worker/session.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "berth/v1/worker.pb.h"
#include "common/ids.h"
#include "common/time.h"
#include "worker/session/actions.h"

namespace berth::worker {

struct Waiter {
  CallId call;
  Time answer_by;  // finish_store only
};

enum class OperationKind : uint8_t { kStore, kFinish, kLoad };

// One numbered operation of a client, kept until the client's low-water mark passes it.
struct Operation {
  OperationKind kind = OperationKind::kStore;
  size_t content_hash = 0;
  std::optional<Reply> reply;   // answered; a retry gets it again
  std::vector<Waiter> waiters;  // calls that wait while it is not
  // The server asked for it back, or the client gave it up, before the answer was known.
  bool poisoned = false;
  // kFinish. `codes` has an element for each replica named; those that went to the server are in
  // `sent`.
  std::string codes;
  struct Sent {
    size_t index;
    ReplicaId replica;
  };
  std::vector<Sent> sent;
  // The server no longer knows the client, so it cannot say what became of the commit: the next
  // re-attach tells.
  bool in_doubt = false;
};

// Why a client goes, and with it what has to be said to the server at the end.
enum class Ending : uint8_t {
  kNo,
  kLeft,      // CloseSession
  kDead,      // FenceClient: its life lock was free
  kDisowned,  // nothing: the server itself ended it
};

struct Client {
  SessionId session;
  std::string token;
  std::string engine_id;
  JoinId join;  // none while its stream is gone
  // It is dead when all of these are free. More than one after its stream broke and came back.
  std::vector<std::string> life_names;
  std::vector<size_t> pools;  // it may map them
  std::set<PoolId> imports;   // of other workers: it was told to map them
  // Joined through our dead predecessor first: it may read pools of others under leases that the
  // ledger does not have.
  bool is_taken_over = false;
  bool rejoining = false;  // told to join again: calls are refused, its spans stand until proof
  Ending ending = Ending::kNo;  // its spans are back; what it owes is being settled
  std::vector<CallId> leave_calls;

  OperationNumber low_water = 0;
  OperationNumber low_water_told = 0;
  std::map<OperationNumber, Operation> operations;
  std::map<ReplicaId, OperationNumber> committing;  // by which finish
  std::set<OperationNumber> unresolved;  // loads given up while the answer was on its way

  std::set<OperationNumber> cancelled;  // stores that the server wants stopped, not yet aborted
  std::set<LeaseId> revoked;            // handles that it wants back, not yet released

  // Said to the server again and again until it answers.
  std::set<ReplicaId> aborting;  // those in the ledger keep their pages until then
  std::set<LeaseId> releasing;
  std::optional<Time> release_by;  // of the releases that wait for company
  bool abort_sent = false;
  bool release_sent = false;
  bool end_sent = false;

  bool is_live() const { return !rejoining && ending == Ending::kNo; }
};

struct PendingJoin {
  JoinId join;
  v1::JoinHello hello;
  std::string life_name;
  std::string request_token;
  std::string ticket;
  bool sent = false;
  bool stream_ended = false;
};

enum class RequestKind : uint8_t {
  kOperation,  // Reserve, Commit, Acquire
  kProbe,
  kRenew,
  kOpenNamespace,
  kOpenClient,
  kAbort,
  kRelease,
  kEndClient,  // CloseSession or FenceClient, of a client of ours or of the predecessor's
  kReleaseOrphan,
  kRegisterPool,
  kExportPool,
  kImportPool,
  kEndExport,
  kResolve,
};

// A request on its way to berthd. Sent again, under the same correlation, until it is answered.
struct Request {
  RequestKind kind = RequestKind::kProbe;
  SessionId client;
  OperationNumber operation = 0;
  CallId call;
  JoinId join;
  PoolId orphan;
  size_t pool_slot = 0;
  PoolId import;                // kImportPool
  std::string life_name;        // kExportPool, kImportPool, kEndExport
  std::vector<uint64_t> named;  // kAbort: replicas; kRelease: leases
  std::vector<size_t> indexes;  // kRenew: which handle of the call each lease is
  size_t items = 0;             // kRenew: handles of the call
  Time send_at;                 // when to send it (again)
  std::optional<Time> give_up_at;
  v1::LinkRequest message;
};

struct PoolSlot {
  v1::PoolSpec spec;
  uint64_t map_bytes = 0;
  PoolId id;               // none until registered with the session of now
  bool was_tried = false;  // registration was answered once
  bool is_sent = false;    // registration is on its way
  Time try_at;             // after a refusal that may pass
  std::string claimed_by;  // PROCESS scope without a configured engine
};

// Another worker of this host that imports from us.
struct Peer {
  v1::WorkerHello hello;
  std::map<size_t, Time> pools;  // by slot: passed or being passed to it, or not to be tried before
};

// A HOST pool of ours, passed or being passed to a peer. It is over when its life lock is free.
struct Export {
  PeerId peer;  // none once its connection is gone
  SessionId importer;
  size_t pool_slot = 0;
  PoolId pool;
  bool is_sent = false;      // ExportPool is on its way
  bool is_recorded = false;  // at the server: it may be passed
  bool is_free = false;
  bool end_sent = false;
};

// A pool of another worker that we hold the descriptor of.
struct Import {
  ImportId id;
  v1::SharedPool shared;
  bool is_sent = false;      // ImportPool is on its way
  bool is_stated = false;    // over the present Link
  bool is_imported = false;  // clients may be told of it
};

struct NamespaceFacts {
  Fingerprint fingerprint;
  uint32_t digest_bytes = 0;
};

// A client session of the predecessor that has not come back yet. Dead once all locks are free.
struct Stranger {
  std::string engine_id;
  std::set<std::string> life_names;
  bool is_dead = false;
  bool end_sent = false;
};

}  // namespace berth::worker
