// Stores, and every way in which one can go wrong between its steps.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {

using StoreCodes = std::vector<v1::StoreCode>;
using CommitCodes = std::vector<v1::CommitCode>;

TEST_CASE("granted items get pages of the ledger, others keep the server's code",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.begin_store(engine, 1, 3);
  const auto request = rig.answer_reserve(
      {v1::STORE_CODE_GRANTED, v1::STORE_CODE_ALREADY_PRESENT, v1::STORE_CODE_GRANTED}, 1001);
  CHECK(request.reserve().operation() == 1);
  CHECK(request.reserve().client_session() == engine.session);
  const auto response = rig.reply<v1::BeginStoreResponse>(call);
  CHECK(rig.store_codes(call) ==
        StoreCodes{v1::STORE_CODE_GRANTED, v1::STORE_CODE_ALREADY_PRESENT, v1::STORE_CODE_GRANTED});
  REQUIRE(response.replicas_size() == 2);
  CHECK(response.replicas(0) == 1001);
  CHECK(response.replicas(1) == 1002);
  CHECK(response.offsets(0) != response.offsets(1));
  CHECK(rig.ledger.find(ReplicaId(1002))->offset == response.offsets(1));
}

TEST_CASE("a finished store is committed at its offsets and sealed by the answer",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 2);
  rig.answer_reserve({v1::STORE_CODE_GRANTED, v1::STORE_CODE_GRANTED}, 1001);
  const CallId call = rig.finish_store(engine, 2, {1002, 1001});
  CHECK(rig.ledger.find(ReplicaId(1001))->state == pool::LedgerState::kWritten);
  REQUIRE(rig.count_sent(v1::LinkRequest::kCommit) == 1);
  const v1::CommitRequest commit = rig.link_sent.back().commit();
  CHECK(commit.offsets(0) == rig.ledger.find(ReplicaId(1002))->offset);
  CHECK_FALSE(rig.is_answered(call));
  rig.answer_commit({v1::COMMIT_CODE_COMMITTED, v1::COMMIT_CODE_CLOSED});
  CHECK(rig.commit_codes(call) == CommitCodes{v1::COMMIT_CODE_COMMITTED, v1::COMMIT_CODE_CLOSED});
  CHECK(rig.ledger.find(ReplicaId(1002))->state == pool::LedgerState::kSealed);
  // Closed: nothing landed. The pages go when the server has heard so.
  CHECK(rig.ledger.find(ReplicaId(1001)) != nullptr);
  rig.answer_abort();
  CHECK(rig.ledger.find(ReplicaId(1001)) == nullptr);
}

TEST_CASE("an item without a hole is skipped here and aborted at the server", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.begin_store(engine, 1, 2, 10 * kPage);  // two of ten pages in sixteen
  rig.answer_reserve({v1::STORE_CODE_GRANTED, v1::STORE_CODE_GRANTED}, 1001);
  const auto response = rig.reply<v1::BeginStoreResponse>(call);
  CHECK(rig.store_codes(call)[0] == v1::STORE_CODE_GRANTED);
  CHECK(rig.store_codes(call)[1] == v1::STORE_CODE_SKIPPED_NO_HOLE);
  CHECK(response.replicas_size() == 1);
  CHECK(rig.take_sent(v1::LinkRequest::kAbort).abort().replicas(0) == 1002);
}

TEST_CASE("a grant in a pool that the engine cannot map is refused here", "[session][store]") {
  AgentRig rig({.pools = {process_pool("mine", 16, "e0"), process_pool("theirs", 16, "e1")}});
  rig.attach();
  const Engine engine = rig.join("e0");
  CHECK(engine.pools.size() == 1);
  const CallId call = rig.begin_store(engine, 1, 1);
  v1::LinkResponse message;
  message.set_correlation(rig.take_sent(v1::LinkRequest::kReserve).correlation());
  message.mutable_reserve()->set_codes(std::string(1, static_cast<char>(v1::STORE_CODE_GRANTED)));
  message.mutable_reserve()->set_first_replica(1001);
  message.mutable_reserve()->add_pools(kPoolId + 1);
  rig.say(message);
  CHECK(rig.store_codes(call) == StoreCodes{v1::STORE_CODE_SKIPPED_NO_POOL});
  CHECK(rig.count_sent(v1::LinkRequest::kAbort) == 1);
}

TEST_CASE("a retry of an operation gets the same spans, and other content is refused",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId first = rig.begin_store(engine, 1, 1);
  const CallId second = rig.begin_store(engine, 1, 1);  // the engine lost patience
  CHECK(rig.count_sent(v1::LinkRequest::kReserve) == 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  const CallId third = rig.begin_store(engine, 1, 1);
  const auto offset = rig.reply<v1::BeginStoreResponse>(first).offsets(0);
  CHECK(rig.reply<v1::BeginStoreResponse>(second).offsets(0) == offset);
  CHECK(rig.reply<v1::BeginStoreResponse>(third).offsets(0) == offset);
  CHECK(rig.refusal(rig.begin_store(engine, 1, 2)) == Reason::kOperationMismatch);
  CHECK(rig.refusal(rig.load(engine, 1, 1)) == Reason::kOperationMismatch);
  CHECK(rig.ledger.entry_count() == 1);
}

TEST_CASE("the window of remembered answers is bounded and moves with the low-water mark",
          "[session][store]") {
  AgentRig rig({.operations_max = 4});
  rig.attach();
  const Engine engine = rig.join("e0");
  for (uint64_t operation = 1; operation <= 4; ++operation) {
    rig.begin_store(engine, operation, 1);
    rig.answer_reserve({v1::STORE_CODE_BEING_WRITTEN}, 0);
  }
  CHECK(rig.refusal(rig.begin_store(engine, 5, 1)) == Reason::kOperationWindowFull);
  rig.low_water = 3;
  rig.begin_store(engine, 5, 1);
  CHECK(rig.count_sent(v1::LinkRequest::kReserve) == 1);
  CHECK(rig.refusal(rig.begin_store(engine, 2, 1)) == Reason::kInvalidArgument);
}

TEST_CASE("the server hears a low-water mark only up to what is still on its way",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.finish_store(engine, 2, {1001});
  rig.low_water = 2;  // wrong: 2 has no answer yet
  rig.probe(engine, 1);
  rig.pass(seconds(1));
  const auto heartbeat = rig.take_sent(v1::LinkRequest::kHeartbeat).heartbeat();
  REQUIRE(heartbeat.low_water_size() == 1);
  CHECK(heartbeat.low_water(0).operation() == 1);
}

TEST_CASE("a doubled or late answer changes nothing", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.begin_store(engine, 1, 1);
  const auto request = rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  v1::LinkResponse again;
  again.set_correlation(request.correlation());
  again.mutable_reserve()->set_codes(std::string(1, static_cast<char>(v1::STORE_CODE_GRANTED)));
  again.mutable_reserve()->set_first_replica(1001);
  again.mutable_reserve()->add_pools(kPoolId);
  rig.say(again);
  CHECK(rig.ledger.entry_count() == 1);
  CHECK(rig.is_answered(call));
}

TEST_CASE("an unanswered request is sent again under the same number", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  const auto first = rig.take_sent(v1::LinkRequest::kReserve);
  rig.pass(milliseconds(2500));
  const auto second = rig.take_sent(v1::LinkRequest::kReserve);
  CHECK(second.correlation() == first.correlation());
  CHECK(second.reserve().operation() == 1);
}

TEST_CASE("while the Link is down stores are skipped at once", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId caught = rig.begin_store(engine, 1, 2);  // its answer was on the way
  rig.lose_link();
  CHECK(rig.was_told(engine, v1::JoinResponse::kServerState));
  const CallId during = rig.begin_store(engine, 2, 1);
  CHECK(rig.store_codes(caught) == StoreCodes(2, v1::STORE_CODE_SKIPPED_UNAVAILABLE));
  CHECK(rig.store_codes(during) == StoreCodes{v1::STORE_CODE_SKIPPED_UNAVAILABLE});
  rig.attach();
  CHECK(rig.count_sent(v1::LinkRequest::kReserve) == 0);
}

TEST_CASE("a store that the Link interrupts is committed under the same number after the re-attach",
          "[session][store]") {
  // Where the Link breaks: before the commit is sent, or before its answer.
  const bool is_sent = GENERATE(false, true);
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  if (!is_sent) rig.lose_link();
  const CallId call = rig.finish_store(engine, 2, {1001});
  if (is_sent) rig.lose_link();
  CHECK_FALSE(rig.is_answered(call));
  rig.attach();
  const auto commit = rig.link_sent.back();
  REQUIRE(rig.count_sent(v1::LinkRequest::kCommit) == 1);
  rig.answer_commit({v1::COMMIT_CODE_COMMITTED});
  CHECK(rig.commit_codes(call) == CommitCodes{v1::COMMIT_CODE_COMMITTED});
  CHECK(rig.ledger.find(ReplicaId(1001))->state == pool::LedgerState::kSealed);
}

TEST_CASE("a finish answers unavailable at its deadline and goes on; a retry hears the outcome",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.lose_link();
  const CallId call = rig.finish_store(engine, 2, {1001});
  rig.pass(milliseconds(2100));
  CHECK(rig.commit_codes(call) == CommitCodes{v1::COMMIT_CODE_UNAVAILABLE});
  rig.attach();
  const CallId retry = rig.finish_store(engine, 2, {1001});
  rig.answer_commit({v1::COMMIT_CODE_COMMITTED});
  CHECK(rig.commit_codes(retry) == CommitCodes{v1::COMMIT_CODE_COMMITTED});
}

TEST_CASE("what the re-attach dropped of a finished store answers closed", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  const CallId call = rig.finish_store(engine, 2, {1001});
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach();
  rig.judge_all(v1::LEDGER_VERDICT_FREE);
  rig.end_reattach();
  rig.welcome_link();
  CHECK(rig.ledger.entry_count() == 0);
  rig.answer_commit({v1::COMMIT_CODE_CLOSED});
  CHECK(rig.commit_codes(call) == CommitCodes{v1::COMMIT_CODE_CLOSED});
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("only the client's own open replicas can be finished", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine owner = rig.join("e0");
  const Engine other = rig.join("e1");
  rig.begin_store(owner, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  CHECK(rig.commit_codes(rig.finish_store(other, 1, {1001})) ==
        CommitCodes{v1::COMMIT_CODE_UNKNOWN});
  rig.abort_store(other, {1001});
  CHECK(rig.count_sent(v1::LinkRequest::kAbort) == 0);
  CHECK(rig.count_sent(v1::LinkRequest::kCommit) == 0);
}

TEST_CASE("an aborted item keeps its pages until the server has heard of it", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  CHECK(rig.is_answered(rig.abort_store(engine, {1001})));
  CHECK(rig.ledger.find(ReplicaId(1001)) != nullptr);
  CHECK(rig.commit_codes(rig.finish_store(engine, 2, {1001})) ==
        CommitCodes{v1::COMMIT_CODE_CLOSED});
  rig.lose_link();  // the abort may be lost: it is said again
  rig.attach();
  rig.answer_abort();
  CHECK(rig.ledger.entry_count() == 0);
  CHECK(rig.count_sent(v1::LinkRequest::kAbort) == 0);
}

TEST_CASE("a cancel that overtakes the answer it concerns poisons it", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.begin_store(engine, 1, 1);
  rig.cancel(engine, 1, {1001});
  CHECK(rig.take_sent(v1::LinkRequest::kAbort).abort().replicas(0) == 1001);
  CHECK_FALSE(rig.is_answered(call));
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  CHECK(rig.store_codes(call) == StoreCodes{v1::STORE_CODE_SKIPPED_CANCELLED});
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("a cancel of a write is passed on, and aborted only when the client gives it back",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.cancel(engine, 1, {1001});
  CHECK(rig.was_told(engine, v1::JoinResponse::kCancel));
  // The client heard of it; the engine's thread may still be writing.
  rig.agent->client_poisoned(engine.join, 1, rig.now);
  rig.settle();
  rig.pass(seconds(60));
  CHECK(rig.count_sent(v1::LinkRequest::kAbort) == 0);
  rig.abort_store(engine, {1001});
  rig.answer_abort();
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("what a client poisons before its answer is given back when it comes",
          "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.begin_store(engine, 1, 1);
  rig.agent->client_poisoned(engine.join, 1, rig.now);
  rig.settle();
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  CHECK(rig.store_codes(call) == StoreCodes{v1::STORE_CODE_SKIPPED_CANCELLED});
  CHECK(rig.take_sent(v1::LinkRequest::kAbort).abort().replicas(0) == 1001);
}

TEST_CASE("a cancel of what is finished waits for the commit's answer", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  const CallId call = rig.finish_store(engine, 2, {1001});
  rig.cancel(engine, 1, {1001});
  CHECK(rig.count_sent(v1::LinkRequest::kAbort) == 0);
  CHECK_FALSE(rig.was_told(engine, v1::JoinResponse::kCancel));
  rig.answer_commit({v1::COMMIT_CODE_CLOSED});
  CHECK(rig.commit_codes(call) == CommitCodes{v1::COMMIT_CODE_CLOSED});
  rig.answer_abort();
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("a cancel of what nobody here holds is answered at once", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.cancel(engine, 9, {1009});
  CHECK(rig.take_sent(v1::LinkRequest::kAbort).abort().replicas(0) == 1009);
}

TEST_CASE("a commit whose client the server has forgotten is settled by the next re-attach",
          "[session][store]") {
  const bool landed = GENERATE(false, true);
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  const CallId call = rig.finish_store(engine, 2, {1001});
  rig.say_error(rig.take_sent(v1::LinkRequest::kCommit).correlation(), Reason::kUnknownSession);
  CHECK_FALSE(rig.agent->is_attached());
  CHECK(rig.was_told(engine, v1::JoinResponse::kRejoin));
  rig.pass(milliseconds(100));
  rig.welcome_reattach();
  rig.judge_all(landed ? v1::LEDGER_VERDICT_KEEP : v1::LEDGER_VERDICT_FREE);
  rig.end_reattach();
  rig.welcome_link();
  CHECK(rig.commit_codes(call) ==
        CommitCodes{landed ? v1::COMMIT_CODE_COMMITTED : v1::COMMIT_CODE_CLOSED});
  if (landed) {
    CHECK(rig.ledger.find(ReplicaId(1001))->state == pool::LedgerState::kSealed);
  } else {
    CHECK(rig.ledger.entry_count() == 0);
  }
  CHECK(rig.count_sent(v1::LinkRequest::kCommit) == 0);
}

TEST_CASE("refusals of a store say what the caller can do", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId refused = rig.begin_store(engine, 1, 1);
  rig.say_error(rig.take_sent(v1::LinkRequest::kReserve).correlation(), Reason::kUnknownNamespace);
  CHECK(rig.refusal(refused) == Reason::kUnknownNamespace);
  const CallId degraded = rig.begin_store(engine, 1, 1);  // not remembered: asked again
  rig.say_error(rig.take_sent(v1::LinkRequest::kReserve).correlation(), Reason::kStoreDegraded);
  CHECK(rig.store_codes(degraded) == StoreCodes{v1::STORE_CODE_SKIPPED_UNAVAILABLE});
}

TEST_CASE("bad batches are refused here, naming the column", "[session][store]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  v1::BeginStoreRequest good;
  *good.mutable_caller() = rig.caller(engine);
  good.set_operation(1);
  good.set_namespace_id(kNamespace);
  good.set_digests(std::string(32, 'd'));
  good.add_sizes(kPage);
  struct Row {
    const char* what;
    std::function<void(v1::BeginStoreRequest&)> break_it;
    Reason reason;
  };
  uint64_t call = 5000;
  for (const Row& row : std::vector<Row>{
           {"a digest of 15 bytes", [](auto& r) { r.set_digests(std::string(15, 'd')); },
            Reason::kInvalidArgument},
           {"no digest", [](auto& r) { r.clear_digests(); }, Reason::kInvalidArgument},
           {"65 items", [](auto& r) { r.set_digests(std::string(65 * 16, 'd')); },
            Reason::kInvalidArgument},
           {"no size", [](auto& r) { r.clear_sizes(); }, Reason::kInvalidArgument},
           {"size zero", [](auto& r) { r.set_sizes(0, 0); }, Reason::kInvalidArgument},
           {"a size beyond the bound", [](auto& r) { r.set_sizes(0, 1 << 30); },
            Reason::kInvalidArgument},
           {"three shards for two items",
            [](auto& r) {
              for (int i = 0; i < 3; ++i) r.add_shards(0);
            },
            Reason::kInvalidArgument},
           {"another namespace", [](auto& r) { r.set_namespace_id(99); },
            Reason::kUnknownNamespace},
           {"another worker process",
            [](auto& r) { r.mutable_caller()->set_worker_incarnation(1); }, Reason::kRejoin},
           {"another client", [](auto& r) { r.mutable_caller()->set_client_session(9); },
            Reason::kRejoin},
           {"a wrong token", [](auto& r) { r.mutable_caller()->set_token("x"); },
            Reason::kWrongToken}}) {
    INFO(row.what);
    v1::BeginStoreRequest request = good;
    row.break_it(request);
    rig.agent->begin_store(CallId(++call), request, rig.now);
    rig.settle();
    CHECK(rig.refusal(CallId(call)) == row.reason);
  }
  CHECK(rig.count_sent(v1::LinkRequest::kReserve) == 0);
}

}  // namespace berth::worker
