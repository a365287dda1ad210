// An agent with a ledger and a server and engines that are played by hand: inputs go in as
// sentences, actions come out by kind. Every step checks the agent's invariants.
#pragma once

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/session/agent.h"

namespace berth::worker {

inline constexpr uint64_t kProcess = 77;
inline constexpr uint64_t kPoolId = 500;  // of the first pool; the next ones count up
inline constexpr uint64_t kWorkerSession = 10;
inline constexpr uint64_t kNamespace = 3;
inline constexpr uint64_t kPage = 4096;

// A client as the engine knows it.
struct Engine {
  JoinId join;
  uint64_t session = 0;
  std::string token;
  std::string life_name;
  std::vector<uint64_t> pools;
};

struct RigOptions {
  std::vector<AgentPool> pools = {};  // default: one HOST pool of 16 pages
  uint32_t operations_max = 16;
  size_t clients_max = 4;
  Duration release_within = {};  // as soon as they come
};

AgentPool host_pool(const std::string& name, uint64_t pages);
AgentPool process_pool(const std::string& name, uint64_t pages, const std::string& engine);

class AgentRig {
 public:
  explicit AgentRig(RigOptions options = {});

  // ---- The server's side ----
  // From waiting to attached, every ledger entry kept, pools registered.
  void attach();
  void open_session();
  void welcome_reattach(bool foreign = false);
  void judge_all(v1::LedgerVerdict verdict);
  void end_reattach();
  void welcome_link();
  void answer_pools();
  void lose_link();
  // Time passes in ticks of 50 ms.
  void pass(Duration duration);

  // The newest request of a kind that was sent and not yet taken; fails when there is none.
  v1::LinkRequest take_sent(v1::LinkRequest::BodyCase kind);
  size_t count_sent(v1::LinkRequest::BodyCase kind) const;
  void forget_sent() { link_sent.clear(); }
  void say(v1::LinkResponse message);
  void say_error(uint64_t correlation, Reason reason);
  // Answers the Reserve that was sent: these codes, granted ids from `first`.
  v1::LinkRequest answer_reserve(const std::vector<v1::StoreCode>& codes, uint64_t first);
  void answer_commit(const std::vector<v1::CommitCode>& codes);
  void answer_abort();
  void answer_release();
  struct Place {
    uint64_t replica;
    uint64_t offset;
    uint64_t pool = kPoolId;
    uint64_t size = kPage;
  };
  // One place a chunk.
  void answer_acquire(uint64_t lease, const std::vector<Place>& chunks);
  void reclaim(uint64_t replica);
  void cancel(const Engine& engine, uint64_t operation, std::vector<uint64_t> replicas);
  void revoke(const Engine& engine, uint64_t operation, uint64_t lease);
  std::vector<uint64_t> take_acknowledged();

  // ---- The engines' side ----
  JoinId start_join(const std::string& engine_id, uint64_t resume = 0, std::string token = {});
  Engine join(const std::string& engine_id);
  Engine finish_join(JoinId join, uint64_t session);
  CallId begin_store(const Engine& engine, uint64_t operation, size_t items, uint64_t size = kPage);
  CallId finish_store(const Engine& engine, uint64_t operation, std::vector<uint64_t> replicas);
  CallId abort_store(const Engine& engine, std::vector<uint64_t> replicas);
  CallId load(const Engine& engine, uint64_t operation, size_t chunks);
  CallId probe(const Engine& engine, size_t chunks);
  CallId release(const Engine& engine, uint64_t handle);
  CallId leave(const Engine& engine);
  v1::ClientCaller caller(const Engine& engine) const;
  // A store of one item that is READY at the server; returns its replica.
  uint64_t ready(const Engine& engine, uint64_t operation, uint64_t replica);

  bool is_answered(CallId call) const { return answers.count(call) > 0; }
  template <class T>
  T reply(CallId call) const {
    REQUIRE(is_answered(call));
    const Result<Reply>& result = answers.at(call);
    INFO((result ? std::string() : result.error().message));
    REQUIRE(result.has_value());
    return std::get<T>(*result);
  }
  Reason refusal(CallId call) const {
    REQUIRE(is_answered(call));
    REQUIRE_FALSE(answers.at(call).has_value());
    return answers.at(call).error().reason;
  }
  std::vector<v1::StoreCode> store_codes(CallId call) const;
  std::vector<v1::CommitCode> commit_codes(CallId call) const;
  std::vector<v1::JoinResponse> pushed_to(const Engine& engine) const;
  bool was_told(const Engine& engine, v1::JoinResponse::BodyCase kind) const;

  void life(const std::string& name, Agent::Life life);
  // Takes and files the actions; checks the invariants.
  void settle();

  pool::Ledger ledger;
  std::optional<Agent> agent;
  Time now{1000};
  uint32_t low_water = 0;  // what the engines say with every call
  bool is_silent = false;  // the server does not answer heartbeats
  std::string store_id = std::string(16, 's');
  uint32_t epoch = 1;
  uint64_t next_pool = kPoolId;
  std::vector<uint64_t> known_clients;  // what the server lists at a re-attach

  // What came out.
  ConnectionId connection;
  std::optional<v1::OpenSessionRequest> session_wanted;
  std::vector<v1::ReattachRequest> reattach_sent;
  std::deque<v1::LinkRequest> link_sent;
  std::map<CallId, Result<Reply>> answers;
  std::vector<Welcome> welcomes;
  std::vector<Push> pushes;
  std::vector<EndJoin> ended_joins;
  std::vector<SessionId> introduced;
  std::vector<LockExport> locks_wanted;
  std::vector<PassExport> passed;
  std::vector<std::string> discarded;
  std::vector<GrantImport> granted;
  std::vector<ImportId> dropped;
  std::vector<std::string> life_tests;
  std::vector<Error> fatals;
  std::vector<std::string> notes;

 private:
  struct Filer;
  CallId next_call() { return CallId(++calls_made_); }
  // One call of the engine: its caller's proof is added, and what it led to is filed.
  template <class Request>
  CallId ask(const Engine& engine, Request request,
             void (Agent::*input)(CallId, const Request&, Time)) {
    *request.mutable_caller() = caller(engine);
    const CallId call = next_call();
    ((*agent).*input)(call, request, now);
    settle();
    return call;
  }

  RigOptions options_;
  uint64_t calls_made_ = 0;
  uint64_t joins_made_ = 0;
  uint64_t sessions_made_ = 100;
};

}  // namespace berth::worker
