// Being attached, losing it, and what a re-attach tells and hears.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {

TEST_CASE("a worker opens a session, re-attaches, links, and registers its pools",
          "[session][attach]") {
  AgentRig rig;
  rig.agent->tick(rig.now);
  rig.settle();
  REQUIRE(rig.session_wanted);
  CHECK(rig.session_wanted->role() == v1::ROLE_WORKER);
  CHECK(rig.session_wanted->worker_name() == "w0");
  CHECK(rig.session_wanted->life_lock_held());
  rig.open_session();
  REQUIRE(rig.reattach_sent.size() == 1);
  CHECK(rig.reattach_sent[0].hello().caller().session() == kWorkerSession);
  rig.welcome_reattach();
  REQUIRE(rig.reattach_sent.back().has_end());
  rig.end_reattach();
  CHECK(rig.take_sent(v1::LinkRequest::kHello).hello().caller().incarnation() == 2);
  rig.welcome_link();
  CHECK(rig.count_sent(v1::LinkRequest::kHeartbeat) == 1);
  CHECK(rig.take_sent(v1::LinkRequest::kRegisterPool).register_pool().spec().name() == "cpu");
  CHECK(rig.agent->is_attached());
}

TEST_CASE("a worker that would have somebody fenced proves again that it lives",
          "[session][attach]") {
  AgentRig rig;
  rig.agent->tick(rig.now);
  rig.settle();
  CHECK(rig.session_wanted->proven_at() == 0);
  rig.session_wanted.reset();
  v1::OpenSessionResponse answer;
  answer.set_prove_again(41);
  rig.agent->session_opened(rig.connection, answer, rig.now);
  rig.settle();
  REQUIRE(rig.session_wanted);
  CHECK(rig.session_wanted->proven_at() == 41);
  rig.open_session();
  rig.welcome_reattach();
  rig.end_reattach();
  rig.welcome_link();
  CHECK(rig.agent->is_attached());
}

TEST_CASE("a name in use and an unsupported version end the worker; an outage does not",
          "[session][attach]") {
  struct Row {
    Reason reason;
    bool is_fatal;
  };
  for (const Row row : {Row{Reason::kNameInUse, true}, Row{Reason::kUnsupportedVersion, true},
                        Row{Reason::kUnavailable, false}, Row{Reason::kLimitReached, false}}) {
    INFO(name_of(row.reason));
    AgentRig rig;
    rig.agent->tick(rig.now);
    rig.settle();
    rig.agent->session_opened(rig.connection, refuse(row.reason, "no"), rig.now);
    rig.settle();
    CHECK(rig.fatals.empty() != row.is_fatal);
    CHECK(rig.agent->stage_name() == (row.is_fatal ? "failed" : "waiting"));
  }
}

TEST_CASE("tries come back after a pause that grows, and not before", "[session][attach]") {
  AgentRig rig;
  rig.agent->tick(rig.now);
  rig.settle();
  std::vector<int64_t> waits;
  for (int i = 0; i < 8; ++i) {
    rig.session_wanted.reset();
    rig.agent->connection_failed(rig.connection, {Reason::kUnavailable, "refused"}, rig.now);
    rig.settle();
    const Time failed = rig.now;
    while (!rig.session_wanted) rig.pass(milliseconds(50));
    waits.push_back((rig.now - failed).millis);
  }
  CHECK(waits.front() <= 100);
  CHECK(waits.back() >= 1000);
  CHECK(waits.back() <= 2050);
}

TEST_CASE("what an earlier connection still says is ignored", "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const ConnectionId old = rig.connection;
  rig.lose_link();
  rig.attach();
  REQUIRE(rig.connection != old);
  v1::LinkResponse message;
  message.mutable_error()->set_code(14);
  rig.agent->link_received(old, message, rig.now);
  rig.agent->connection_failed(old, {Reason::kUnavailable, "late"}, rig.now);
  rig.settle();
  CHECK(rig.agent->is_attached());
}

TEST_CASE("a server that falls silent is left, and a step of attaching that hangs is given up",
          "[session][attach]") {
  AgentRig rig;
  rig.attach();
  rig.is_silent = true;
  rig.pass(seconds(9));  // heartbeats go out, nothing comes back
  CHECK(rig.agent->is_attached());
  CHECK(rig.count_sent(v1::LinkRequest::kHeartbeat) >= 9);
  const ConnectionId silent = rig.connection;
  rig.pass(seconds(4));  // left, and tried again by now
  CHECK_FALSE(rig.agent->is_attached());
  CHECK(rig.agent->stage_name() == "reattaching");
  const ConnectionId hanging = rig.connection;
  CHECK(hanging != silent);
  rig.pass(seconds(13));
  CHECK(rig.connection != hanging);
}

TEST_CASE("a re-attach reports every replica, then the leases, then the living clients",
          "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.begin_store(engine, 3, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1002);
  rig.load(engine, 4, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach();

  REQUIRE(rig.reattach_sent.size() == 4);  // hello, replicas, leases, end
  const v1::LedgerChunk& chunk = rig.reattach_sent[1].chunk();
  CHECK(chunk.pool() == kPoolId);
  CHECK(chunk.namespace_fingerprint() == std::string(16, 'f'));
  CHECK(chunk.digests().size() == 32);
  REQUIRE(chunk.replicas_size() == 2);
  CHECK(chunk.replicas(0) == 1001);
  CHECK(chunk.states(0) == v1::LEDGER_STATE_SEALED);
  CHECK(chunk.states(1) == v1::LEDGER_STATE_WRITING);
  const v1::HeldLease& lease = rig.reattach_sent[2].chunk().leases(0);
  CHECK(lease.lease() == 2001);
  CHECK(lease.client_session() == engine.session);
  CHECK(lease.replicas(0) == 1001);
  REQUIRE(rig.reattach_sent[3].end().clients_size() == 1);
  CHECK(rig.reattach_sent[3].end().clients(0) == engine.session);
}

TEST_CASE("verdicts free what the server does not know, and stop a writer first",
          "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.begin_store(engine, 3, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1002);
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach();
  rig.judge_all(v1::LEDGER_VERDICT_FREE);
  CHECK(rig.ledger.find(ReplicaId(1001)) == nullptr);
  // The engine may still write: told to stop, its pages stand until it says so.
  CHECK(rig.was_told(engine, v1::JoinResponse::kCancel));
  CHECK(rig.ledger.usage(PoolId(kPoolId))->allocated_bytes == kPage);
  rig.end_reattach();
  rig.welcome_link();
  rig.abort_store(engine, {1002});
  CHECK(rig.ledger.usage(PoolId(kPoolId))->allocated_bytes == 0);
  CHECK(rig.commit_codes(rig.finish_store(engine, 4, {1002})) ==
        std::vector{v1::COMMIT_CODE_CLOSED});
}

TEST_CASE("a foreign store frees everything, once no span is out, and offers nothing meanwhile",
          "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.store_id = std::string(16, 'x');
  rig.welcome_reattach(true);
  CHECK(rig.agent->stage_name() == "draining");
  CHECK(rig.was_told(engine, v1::JoinResponse::kRejoin));
  CHECK(rig.refusal(rig.begin_store(engine, 4, 1)) == Reason::kRejoin);
  CHECK(rig.ledger.find(ReplicaId(1001)) != nullptr);  // still being read

  const JoinId waiting = rig.start_join("e1");
  rig.pass(seconds(5));
  CHECK(rig.agent->stage_name() == "draining");
  CHECK_FALSE(rig.session_wanted);

  rig.leave(engine);
  CHECK(rig.ledger.entry_count() == 0);
  CHECK(rig.ledger.pools().empty());
  rig.known_clients.clear();
  rig.pass(milliseconds(50));
  REQUIRE(rig.session_wanted);
  CHECK(rig.session_wanted->life_lock_held());
  rig.attach();
  CHECK(rig.ledger.pools().size() == 1);
  const Engine next = rig.finish_join(waiting, 300);
  CHECK(next.pools == std::vector<uint64_t>{kPoolId + 1});
}

TEST_CASE("a foreign store's reader that dies frees what it held", "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 2);
  rig.answer_reserve({v1::STORE_CODE_GRANTED, v1::STORE_CODE_GRANTED}, 1001);
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach(true);
  rig.life(engine.life_name, Agent::Life::kHeld);
  CHECK(rig.ledger.entry_count() == 2);
  rig.life(engine.life_name, Agent::Life::kFree);
  CHECK(rig.ledger.entry_count() == 0);
  CHECK(rig.agent->client_count() == 0);
}

TEST_CASE("a session that the server does not know any more is drained and made anew",
          "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const std::string first = std::string(16, 'r');
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.agent->connection_failed(rig.connection, {Reason::kSessionFenced, "fenced"}, rig.now);
  rig.settle();
  rig.pass(milliseconds(100));
  REQUIRE(rig.session_wanted);
  CHECK(rig.session_wanted->request_token() != first);
  // Another worker may have the name by now: its death is not claimed a second time.
  CHECK_FALSE(rig.session_wanted->life_lock_held());
}

namespace {

// A Link whose pools are not registered yet.
void link_up(AgentRig& rig) {
  rig.agent->tick(rig.now);
  rig.settle();
  rig.open_session();
  rig.welcome_reattach();
  rig.end_reattach();
  rig.welcome_link();
}

}  // namespace

TEST_CASE("a pool that the host has no room for is tried again, a senseless one ends the worker",
          "[session][attach]") {
  AgentRig rig;
  link_up(rig);
  const JoinId waiting = rig.start_join("e0");
  rig.say_error(rig.take_sent(v1::LinkRequest::kRegisterPool).correlation(),
                Reason::kBudgetExceeded);
  const Engine engine = rig.finish_join(waiting, 101);
  CHECK(engine.pools.empty());
  rig.pass(seconds(2));
  rig.answer_pools();
  CHECK(rig.ledger.pools().size() == 1);
  CHECK(rig.was_told(engine, v1::JoinResponse::kRejoin));  // it cannot reach the new pool

  AgentRig second;
  link_up(second);
  second.say_error(second.take_sent(v1::LinkRequest::kRegisterPool).correlation(),
                   Reason::kInvalidArgument);
  CHECK(second.fatals.size() == 1);
}

TEST_CASE("a pool that is refused because its session was fenced waits for the next session",
          "[session][attach]") {
  AgentRig rig;
  link_up(rig);
  rig.say_error(rig.take_sent(v1::LinkRequest::kRegisterPool).correlation(),
                Reason::kUnknownSession);
  CHECK(rig.fatals.empty());
  CHECK(rig.count_sent(v1::LinkRequest::kRegisterPool) == 0);
  rig.pass(seconds(2));
  rig.answer_pools();
  CHECK(rig.ledger.pools().size() == 1);
}

TEST_CASE("verdicts that do not fit the chunk break the attempt", "[session][attach]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach();
  v1::ReattachResponse message;
  message.mutable_verdicts();
  rig.agent->reattach_received(rig.connection, message, rig.now);
  rig.settle();
  CHECK(rig.agent->stage_name() == "waiting");
  CHECK(rig.ledger.find(ReplicaId(1001)) != nullptr);
}

}  // namespace berth::worker
