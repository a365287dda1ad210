// The agent: a worker's conversation with berthd and with the engines that joined it, as a
// deterministic state machine over the ledger. It decides everything that correctness hangs on and
// does nothing itself: an input goes in with its `now`, actions come out.
//
//   waiting ─▶ opening (OpenSession) ─▶ reattaching (ledger, verdicts) ─▶ linking ─▶ attached
//      ▲  └────────── session known ──────────▲                                        │
//      └── back-off with jitter ◀── any failure, silence, a newer incarnation ◀────────┘
//      draining: the server does not know this session, or is another store. Nothing is offered;
//      clients are told to rejoin; once nothing is held any more, a new session is opened.
//
// While it is not attached, probes and loads miss, stores are skipped, at once; finished stores and
// everything that gives something back are kept and go on after the re-attach. Link messages may be
// lost, doubled and reordered in any way; those of one Reattach stream arrive once and in order, or
// the stream breaks. Answers of BeginStore, FinishStore and Load are remembered per client until
// its low-water mark passes them, so a retry gets the same spans.
//
// Pure: no clock, threads, I/O, gRPC or chance. One caller at a time. The ledger is the caller's
// and outlives the agent; nobody else changes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/v1/directory.pb.h"
#include "berth/v1/worker.pb.h"
#include "common/error.h"
#include "common/ids.h"
#include "common/time.h"
#include "worker/pool/ledger.h"
#include "worker/session/actions.h"

namespace berth::worker {

inline constexpr uint32_t kProtocolNewest = 1;
inline constexpr uint32_t kProtocolOldest = 1;

struct AgentPool {
  v1::PoolSpec spec;
  uint64_t map_bytes = 0;  // what an importer maps from offset 0
};

struct AgentOptions {
  std::string worker_name;
  std::string node;
  std::string boot_id;        // 16 bytes
  std::string request_token;  // 16 random bytes: makes a repeated OpenSession one session
  uint64_t process = 0;       // random, names this process: the worker_incarnation of engines
  uint64_t host_memory_bytes = 0;
  std::vector<AgentPool> pools;
  std::vector<std::string> write_order;  // pool names; empty: as configured
  uint64_t seed = 0;                     // of the back-off's jitter

  size_t clients_max = 64;                   // attached, and as many more that wait to be
  size_t requests_max = 8192;                // on their way to berthd; more: unavailable
  size_t waiters_per_operation_max = 8;      // calls that wait for one operation
  Duration retry_after = seconds(2);         // an unanswered request is sent again
  Duration retry_pause = milliseconds(250);  // before a request that was put off is sent again
  Duration probe_within = seconds(2);        // then a probe is a miss
  Duration attach_within = seconds(10);      // silence of one step of attaching: start over
  Duration backoff_min = milliseconds(50);
  Duration backoff_max = seconds(2);
  Duration life_test_every = milliseconds(200);
  Duration release_within = milliseconds(10);  // a release waits for company, to the next tick
  Duration pool_retry_every = seconds(1);      // a pool that the host's budget has no room for yet
  Duration export_test_every = seconds(1);     // whether an importer has let go
  Duration export_retry_every = seconds(5);    // a pool that may not be shared now, or was let go
  size_t reattach_chunk_max = 4096;            // the protocol's bound
  size_t reattach_window = 4;                  // chunks sent and not yet judged
};

struct WrittenSpan {
  size_t pool = 0;  // index into the configured pools
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

struct AgentState;

class Agent {
 public:
  Agent(AgentOptions options, pool::Ledger& ledger);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // What the inputs so far led to, in order. Take them after every input.
  std::vector<Action> take_actions();

  // ---- Time ----
  // Call it first, then at least every 50 ms or so.
  void tick(Time now);
  // From now on every new store is skipped and every load misses; what is open goes on.
  void stop(Time now);
  // No client holds anything and nothing waits to be said: a stop can end now.
  bool is_idle() const;

  // ---- From berthd ----
  void session_opened(ConnectionId connection, const Result<v1::OpenSessionResponse>& answer,
                      Time now);
  void reattach_received(ConnectionId connection, const v1::ReattachResponse& message, Time now);
  // Its regular end, after `done`, means nothing; an earlier one breaks the attempt.
  void reattach_ended(ConnectionId connection, const Error& error, Time now);
  void link_received(ConnectionId connection, const v1::LinkResponse& message, Time now);
  // The Link ended, or a call or stream could not be made.
  void connection_failed(ConnectionId connection, const Error& error, Time now);

  // ---- Clients ----
  struct Join {
    JoinId join;
    v1::JoinHello hello;
    std::string life_name;      // the lock is taken already, its descriptor not yet passed
    std::string request_token;  // 16 random bytes
    std::string ticket;         // 16 random bytes
  };
  // Waits until attached, then answers with Welcome or EndJoin.
  void client_joined(Join join, Time now);
  void client_poisoned(JoinId join, OperationNumber operation, Time now);
  // The stream ended: a reason to look at the life lock, never proof.
  void client_stream_ended(JoinId join, Time now);
  // Something else hints at its death (descriptor socket closed, pidfd readable).
  void client_suspected(SessionId client, Time now);
  enum class Life : uint8_t { kFree, kHeld };
  void life_tested(std::string_view life_name, Life life, Time now);

  // ---- Other workers of this host ----
  // A worker connected to import our HOST pools, or its connection ended.
  void peer_connected(PeerId peer, const v1::WorkerHello& hello, Time now);
  void peer_ended(PeerId peer, Time now);
  // As asked for with LockExport; an empty name when there is none.
  void export_locked(PeerId peer, size_t pool_slot, const std::string& life_name, Time now);
  // We were passed this pool, or the connection that it came over ended.
  void import_offered(ImportId import, const v1::SharedPool& shared, Time now);
  void import_ended(ImportId import, Time now);

  // ---- Calls of engines: each is answered once ----
  void open_namespace(CallId call, const v1::WorkerOpenNamespaceRequest& request, Time now);
  void probe(CallId call, const v1::WorkerProbeRequest& request, Time now);
  void begin_store(CallId call, const v1::BeginStoreRequest& request, Time now);
  // Answered with COMMIT_CODE_UNAVAILABLE at `answer_by`; the commit goes on all the same.
  void finish_store(CallId call, const v1::FinishStoreRequest& request, Time answer_by, Time now);
  void abort_store(CallId call, const v1::AbortStoreRequest& request, Time now);
  void load(CallId call, const v1::LoadRequest& request, Time now);
  void wait(CallId call, const v1::WaitRequest& request, Time now);
  void renew(CallId call, const v1::WorkerRenewRequest& request, Time now);
  void release(CallId call, const v1::WorkerReleaseRequest& request, Time now);
  void leave(CallId call, const v1::LeaveRequest& request, Time now);

  // What a FinishStore names, as far as it is this client's: the shell makes it visible (the
  // medium's barrier) before it hands the call in.
  std::vector<WrittenSpan> spans_of(const v1::FinishStoreRequest& request) const;

  // ---- Views ----
  bool is_attached() const;
  // "attached", "waiting", ...: for status lines.
  std::string_view stage_name() const;
  size_t client_count() const;
  std::vector<SessionId> clients() const;
  // The first broken invariant as a sentence; empty when all hold. O(everything).
  std::string check_invariants() const;

 private:
  std::unique_ptr<AgentState> state_;
};

}  // namespace berth::worker
