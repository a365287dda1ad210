// The inside of the agent: its records and the steps between them, one source file a noun
// (agent_attach.cc, agent_clients.cc, agent_store.cc, agent_load.cc, agent_reclaim.cc,
// agent_requests.cc, agent_watch.cc, agent_check.cc). Internal to worker/session.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/text.h"
#include "worker/session/agent.h"
#include "worker/session/agent_records.h"
#include "worker/session/backoff.h"

namespace berth::worker {

enum class Stage : uint8_t {
  kWaiting,
  kOpening,
  kReattaching,
  kLinking,
  kAttached,
  kDraining,
  kFailed,  // a Fatal was given
};

enum class Access : uint8_t { kRead, kWrite };
// What whoever maps the pool is told of it.
void fill_pool(v1::JoinPool& pool, const PoolSlot& slot, Access access);

struct AgentState {
  AgentState(AgentOptions options_in, pool::Ledger& ledger_in);

  // ---- agent_attach.cc: being attached, losing it, the ledger's re-attach ----
  void begin_attempt();
  void session_opened(const Result<v1::OpenSessionResponse>& answer);
  void open_reattach();
  void reattach_welcomed(const v1::ReattachWelcome& welcome);
  void send_chunks();
  size_t chunk_max() const;
  bool send_replica_chunk();
  bool send_lease_chunk();
  void verdicts_received(const v1::LedgerVerdicts& verdicts);
  void reattach_done(const v1::ReattachDone& done);
  void link_welcomed(const v1::LinkWelcome& welcome);
  // The connection is gone or no good: what cannot wait is answered, then a new try after a pause.
  void detach(const Error& error);
  void drop_requests();
  // kInDoubt: somebody else may have taken the name since, so the next session does not claim that
  // its earlier holder is dead. Two workers that both claimed it would fence each other for ever.
  enum class Name : uint8_t { kOurs, kInDoubt };
  void drain(const std::string& why, Name name);
  void finish_draining_if_empty();
  void fail(const Error& error);
  bool note_store(const v1::StoreIdentity& store);
  // What the server's configuration asks for; it may have changed with a restart of the server.
  template <class Welcome>
  void take_terms(const Welcome& welcome) {
    if (welcome.heartbeat_interval_ms() > 0)
      heartbeat_every = milliseconds(welcome.heartbeat_interval_ms());
    if (welcome.heartbeat_deadline_ms() > 0)
      heartbeat_deadline = milliseconds(welcome.heartbeat_deadline_ms());
    limits.MergeFrom(welcome.limits());
  }
  void enter(Stage next, Duration within);
  void tick_attachment();
  void send_heartbeat();
  void register_pools();
  void pool_registered(const Request& request, const Result<v1::RegisterPoolResponse>& answer);

  // ---- agent_requests.cc: the way to berthd and back ----
  // False, and nothing is kept, when not attached or at the bound.
  bool submit(Request request);
  void keep(Request request);  // sent now if attached, else once it is
  void transmit(Request& request);
  void put_back(uint64_t correlation, Request request);
  void resend_due();
  void link_received(const v1::LinkResponse& message);
  void answered(const Request& request, const v1::LinkResponse& message);
  void refused(uint64_t correlation, Request request, const Error& error);
  void operation_refused(uint64_t correlation, Request request, Client& client, const Error& error);
  void answer_unavailable(const Request& request, v1::MissReason reason);
  void pushed(const v1::LinkResponse& message);
  void send(v1::LinkRequest message, Urgency urgency = Urgency::kInOrder);
  // Says what is owed: acknowledgements, aborts, releases, ends of clients.
  void flush();
  void flush_client(Client& client);
  bool may_send_releases(const Client& client) const;
  void owe_late_releases();

  // ---- agent_clients.cc: who joined, who goes ----
  void open_namespace(CallId call, const v1::WorkerOpenNamespaceRequest& request);
  void namespace_opened(const Request& request, const v1::OpenNamespaceResponse& response);
  void client_joined(Agent::Join join);
  Result<> check_join(const Agent::Join& join);
  void send_open_client(PendingJoin& join);
  void send_pending_joins();
  void client_opened(const Request& request, const Result<v1::OpenSessionResponse>& answer);
  void disown(SessionId id);
  void welcome(Client& client, const PendingJoin& join, const v1::OpenSessionResponse& answer);
  void repeat_requests_to(Client& client);
  std::vector<size_t> claim_pools(const std::string& engine_id);
  void stream_ended(JoinId join);
  // The client the call is from, or why it is refused. Takes its low-water mark over.
  // kAll: also one that must rejoin, because it gives something back.
  enum class Admit : uint8_t { kLive, kAll };
  Result<Client*> admit(const v1::ClientCaller& caller, Admit who);
  void raise_low_water(Client& client, OperationNumber mark);
  void forget_passed(Client& client);
  OperationNumber low_water_to_tell(const Client& client) const;
  void leave(CallId call, Client& client);
  void tell_rejoin(Client& client, const std::string& why);
  // Its spans are back for good: by proof, or because the server said so.
  void end_client(Client& client, Ending ending);
  // Says the end to the server once nothing of the client is in doubt.
  void advance_ending(Client& client);
  void client_ended(SessionId session);
  void push(const Client& client, v1::JoinResponse message);
  void push_server_state();
  Client* find_client(SessionId session);
  Client* client_of(JoinId join);

  // ---- agent_store.cc ----
  void begin_store(CallId call, Client& client, const v1::BeginStoreRequest& request);
  void reserved(Client& client, OperationNumber number, const v1::ReserveRequest& request,
                const v1::ReserveResponse& response);
  void skip_store(Client& client, OperationNumber number, size_t items, v1::StoreCode code);
  bool may_map(const Client& client, PoolId pool) const;
  void finish_store(CallId call, Client& client, const v1::FinishStoreRequest& request,
                    Time answer_by);
  v1::CommitCode take_over(Client& client, OperationNumber number, ReplicaId replica);
  void committed(Client& client, OperationNumber number, const v1::CommitResponse& response);
  void commit_refused(Client& client, OperationNumber number);
  void settle_commit(Client& client, Operation& operation, const Operation::Sent& item,
                     v1::CommitCode code);
  void finish_answered(Client& client, Operation& operation);
  void settle_in_doubt(ReplicaId replica, SessionId session_id, pool::Verdict verdict);
  void finish_doubtful_commits();
  void abort_store(Client& client, const google::protobuf::RepeatedField<uint64_t>& replicas);
  void give_up(Client& client, ReplicaId replica);
  // The client will not hand out what this operation gives.
  void poison(Client& client, OperationNumber number);
  void abort_answered(Client& client, const std::vector<uint64_t>& replicas);
  void cancel(const v1::Cancel& cancel);
  void cancel_write(Client& client, OperationNumber operation);
  void answer_overdue_finishes();

  // ---- agent_load.cc ----
  void probe(CallId call, Client& client, const v1::WorkerProbeRequest& request);
  void load(CallId call, Client& client, const v1::LoadRequest& request);
  void acquired(Client& client, OperationNumber number, const v1::AcquireResponse& response);
  void miss_load(Client& client, OperationNumber number, v1::MissReason reason);
  bool is_ours(PoolId pool) const;
  uint32_t open_chunks(const Client& client, OperationNumber number,
                       const v1::AcquireResponse& response);
  void give_back_lease(Client& client, LeaseId lease);
  void renew(CallId call, Client& client, const v1::WorkerRenewRequest& request);
  void renewed(const Request& request, const v1::RenewResponse& response);
  void release(CallId call, Client& client, const v1::WorkerReleaseRequest& request);
  bool release_lease(Client& client, LeaseId lease);
  void release_answered(Client& client, const std::vector<uint64_t>& leases);
  void revoke(const v1::Revoke& revoke);
  void push_revoke(const Client& client, const v1::Revoke& revoke);
  void resolve_loads(Client& client);
  void resolved(Client& client, OperationNumber number, const v1::ResolveResponse& response);

  // ---- agent_reclaim.cc: what goes, and saying so ----
  void reclaim(const v1::Reclaim& reclaim);
  void stop_writers(std::span<const ReplicaId> replicas);
  void send_acknowledgements();
  void heartbeat_seen(uint64_t sequence);

  // ---- agent_sharing.cc: HOST pools of ours that others read, and of others that ours read ----
  void peer_connected(PeerId peer, const v1::WorkerHello& hello);
  void peer_ended(PeerId peer);
  void export_locked(PeerId peer, size_t pool_slot, const std::string& life_name);
  void flush_sharing();
  void offer_pools();
  void export_answered(const std::string& life_name, const Result<>& answer);
  void export_free(const std::string& life_name);
  void send_exports();
  void end_sharing();
  void import_offered(ImportId id, const v1::SharedPool& shared);
  void import_ended(ImportId id);
  void send_imports();
  void import_answered(PoolId pool, const std::string& life_name, const Result<>& answer);
  void grant_imports(Client& client);
  void drop_import(PoolId pool);
  void restate_imports();

  // ---- agent_operations.cc: numbered operations and their answers ----
  // An operation to work on; nothing when the call was answered or now waits for an earlier try.
  Operation* begin_operation(CallId call, Client& client, OperationNumber number,
                             OperationKind kind, size_t content_hash, Time answer_by);
  Operation* find_unanswered(Client& client, OperationNumber number);
  void answer_operation(Operation& operation, Reply reply);
  // Refused: not remembered, so that the same number may be tried again.
  void refuse_operation(Client& client, OperationNumber number, const Error& error);
  void answer(CallId call, Result<Reply> reply);

  // ---- agent_watch.cc: life locks ----
  void watch(const std::string& life_name);
  void test_due_locks();
  void life_tested(const std::string& life_name, Agent::Life life);
  bool is_wanted(const std::string& life_name) const;
  void expect_strangers(const google::protobuf::RepeatedPtrField<v1::ClientInfo>& clients);
  void say_strangers_dead();
  void release_orphans();

  void note(Note::Level level, std::string event,
            std::vector<std::pair<std::string, std::string>> fields);
  std::string check_invariants() const;

  bool is_attached() const { return stage == Stage::kAttached && !stopping; }

  AgentOptions options;
  pool::Ledger& ledger;
  std::vector<Action> actions;
  Time now;
  bool stopping = false;

  // Attachment
  Stage stage = Stage::kWaiting;
  ConnectionId connection;
  uint64_t connections_made = 0;
  uint64_t sessions_opened = 0;
  uint64_t proven_at = 0;  // newest session that may be fenced on this process's word
  bool owns_name = true;   // the life lock proves that an earlier holder of the name is dead
  Time next_attempt;
  Time stage_deadline;
  Backoff backoff;
  SessionId session;
  std::string token;
  Incarnation incarnation = 0;
  Epoch epoch_seen = 0;
  std::string store_id;
  v1::Limits limits;
  Duration heartbeat_every = seconds(1);
  Duration heartbeat_deadline = seconds(10);
  Time heard_at;
  Time heartbeat_at;
  uint64_t heartbeat_sequence = 0;
  std::vector<PoolSlot> pools;

  // Re-attach
  std::vector<ReplicaId> ledger_order;
  size_t ledger_next = 0;
  std::vector<LeaseId> lease_order;
  size_t lease_next = 0;
  bool ledger_ended = false;
  std::deque<std::vector<ReplicaId>> unjudged;  // a chunk each

  // Requests
  uint64_t correlations_used = 0;
  std::map<uint64_t, Request> requests;
  // Reclaims acknowledged before the heartbeat of that number.
  std::deque<std::pair<uint64_t, std::vector<ReplicaId>>> acknowledged;

  // Clients
  std::map<SessionId, Client> clients;
  std::map<JoinId, SessionId> client_by_join;
  std::map<JoinId, PendingJoin> pending_joins;
  std::set<SessionId> owing;  // has something to say to the server
  std::map<uint64_t, NamespaceFacts> namespaces;

  // Life locks
  std::map<std::string, Time> watched;  // when to test next
  std::map<SessionId, Stranger> strangers;
  std::map<PoolId, std::set<std::string>> orphans;  // pool of the predecessor: who may map it
  std::set<PoolId> orphans_sent;

  // Other workers of this host
  std::map<PeerId, Peer> peers;
  std::map<std::string, Export> exports;  // by life lock
  std::map<PoolId, Import> imports;
  bool sharing_changed = false;  // or time has passed
};

}  // namespace berth::worker
