// Clients: joining, leaving, dying, being fenced, and what a predecessor left.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {
namespace {

void answer_end(AgentRig& rig, v1::LinkRequest::BodyCase kind) {
  v1::LinkResponse message;
  message.set_correlation(rig.take_sent(kind).correlation());
  if (kind == v1::LinkRequest::kFenceClient) message.mutable_fence_client();
  if (kind == v1::LinkRequest::kCloseSession) message.mutable_close_session();
  if (kind == v1::LinkRequest::kReleaseOrphans) message.mutable_release_orphans();
  rig.say(message);
}

}  // namespace

TEST_CASE("a join waits for the Link and names the pools that the engine may map",
          "[session][client]") {
  AgentRig rig({.pools = {host_pool("shared", 16), process_pool("mine", 16, "e0"),
                          process_pool("theirs", 16, "e1"), process_pool("free", 16, "")}});
  const JoinId early = rig.start_join("e0");
  CHECK(rig.welcomes.empty());
  rig.attach();
  const Engine first = rig.finish_join(early, 101);
  CHECK(first.pools == std::vector<uint64_t>{500, 501, 503});
  const Engine second = rig.join("e1");
  CHECK(second.pools == std::vector<uint64_t>{500, 502});  // "free" belongs to e0 now
  CHECK(rig.welcomes[0].message.worker_incarnation() == kProcess);
  CHECK(rig.welcomes[0].message.descriptor_ticket() == std::string(16, 'k'));
}

TEST_CASE("joins are refused when they make no sense or there are too many", "[session][client]") {
  AgentRig rig({.clients_max = 1});
  rig.attach();
  rig.start_join("bad name");
  REQUIRE(rig.ended_joins.size() == 1);
  CHECK(rig.ended_joins[0].error.reason == Reason::kInvalidArgument);
  rig.join("e0");
  rig.start_join("e1");
  REQUIRE(rig.ended_joins.size() == 2);
  CHECK(rig.ended_joins[1].error.reason == Reason::kLimitReached);
}

TEST_CASE("a join in an outage is repeated with the same token", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const JoinId id = rig.start_join("e0");
  const auto first = rig.take_sent(v1::LinkRequest::kOpenClient);
  rig.lose_link();
  rig.attach();
  CHECK(rig.link_sent.back().open_client().request_token() == first.open_client().request_token());
  rig.finish_join(id, 101);
  CHECK(rig.agent->client_count() == 1);
}

TEST_CASE("the end of a stream proves nothing; a free life lock does", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.begin_store(engine, 4, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1002);
  rig.agent->client_stream_ended(engine.join, rig.now);
  rig.settle();
  rig.pass(milliseconds(400));
  REQUIRE(rig.life_tests.size() >= 2);
  CHECK(rig.life_tests[0] == engine.life_name);
  rig.life(engine.life_name, Agent::Life::kHeld);
  CHECK(rig.ledger.spans_of(SessionId(engine.session)).readers == 1);

  rig.life(engine.life_name, Agent::Life::kFree);
  CHECK(rig.ledger.spans_of(SessionId(engine.session)).readers == 0);
  CHECK(rig.take_sent(v1::LinkRequest::kAbort).abort().replicas(0) == 1002);
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 0);  // after what it owes
  const uint64_t lease = rig.take_sent(v1::LinkRequest::kRelease).release().leases(0);
  CHECK(lease == 2001);
  rig.lose_link();
  rig.attach();
  rig.answer_abort();
  rig.answer_release();
  const auto fence = rig.link_sent.back().fence_client();
  CHECK(fence.client_session() == engine.session);
  CHECK(fence.proof() == v1::FenceClientRequest::PROOF_LIFE_LOCK);
  answer_end(rig, v1::LinkRequest::kFenceClient);
  CHECK(rig.agent->client_count() == 0);
  CHECK(rig.ledger.find(ReplicaId(1002)) == nullptr);
  CHECK(rig.ledger.find(ReplicaId(1001)) != nullptr);  // READY: the pool's, not the client's
}

TEST_CASE("a client's proven death is kept across outages", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.lose_link();
  rig.life(engine.life_name, Agent::Life::kFree);
  rig.attach();
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 1);
  rig.lose_link();
  rig.attach();
  answer_end(rig, v1::LinkRequest::kFenceClient);
  CHECK(rig.agent->client_count() == 0);
}

TEST_CASE("what a dead client had finished is committed before it is fenced", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.finish_store(engine, 2, {1001});
  rig.life(engine.life_name, Agent::Life::kFree);
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 0);
  CHECK(rig.count_sent(v1::LinkRequest::kAbort) == 0);
  rig.answer_commit({v1::COMMIT_CODE_COMMITTED});
  CHECK(rig.ledger.find(ReplicaId(1001))->state == pool::LedgerState::kSealed);
  answer_end(rig, v1::LinkRequest::kFenceClient);
  CHECK(rig.agent->client_count() == 0);
}

TEST_CASE("a grant that arrives after its client died is given back", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.load(engine, 2, 1);
  rig.life(engine.life_name, Agent::Life::kFree);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.answer_acquire(2001, {{1005, 0}});
  CHECK(rig.ledger.entry_count() == 0);
  rig.answer_abort();
  rig.answer_release();
  answer_end(rig, v1::LinkRequest::kFenceClient);
  CHECK(rig.agent->client_count() == 0);
}

TEST_CASE("a client that leaves gives everything back and its session is closed",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  const CallId call = rig.leave(engine);
  rig.answer_release();
  CHECK_FALSE(rig.is_answered(call));
  answer_end(rig, v1::LinkRequest::kCloseSession);
  CHECK(rig.is_answered(call));
  CHECK(rig.agent->client_count() == 0);
  CHECK(rig.refusal(rig.probe(engine, 1)) == Reason::kRejoin);
}

TEST_CASE("leaving in an outage does not wait for the server", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.lose_link();
  CHECK(rig.is_answered(rig.leave(engine)));
  rig.attach();
  answer_end(rig, v1::LinkRequest::kCloseSession);
  CHECK(rig.agent->client_count() == 0);
}

TEST_CASE("a client that an operator fenced loses its spans and is told to rejoin",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  v1::LinkResponse message;
  message.mutable_client_fenced()->set_client_session(engine.session);
  rig.say(message);
  CHECK(rig.was_told(engine, v1::JoinResponse::kRejoin));
  CHECK(rig.refusal(rig.begin_store(engine, 2, 1)) == Reason::kRejoin);
  rig.say_error(rig.take_sent(v1::LinkRequest::kAbort).correlation(), Reason::kUnknownSession);
  CHECK(rig.ledger.entry_count() == 0);
  CHECK(rig.agent->client_count() == 0);
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 0);
}

TEST_CASE("a client that the server lost keeps its spans until it is gone, and rejoins",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.lose_link();
  rig.known_clients.clear();
  rig.attach();
  CHECK(rig.was_told(engine, v1::JoinResponse::kRejoin));
  rig.reclaim(1001);
  CHECK(rig.take_acknowledged().empty());
  rig.life(engine.life_name, Agent::Life::kFree);
  CHECK(rig.take_acknowledged() == std::vector<uint64_t>{1001});
}

TEST_CASE("a stream that comes back resumes the session, and hears what it missed",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.agent->client_stream_ended(engine.join, rig.now);
  rig.settle();
  rig.cancel(engine, 1, {1001});

  rig.start_join("e0", engine.session, "wrong");
  CHECK(rig.ended_joins.back().error.reason == Reason::kWrongToken);
  const JoinId again = rig.start_join("e0", engine.session, engine.token);
  const Engine resumed = rig.finish_join(again, engine.session);
  CHECK(rig.welcomes.back().message.operation_low_water() == 1);
  CHECK(rig.was_told(resumed, v1::JoinResponse::kCancel));
  // Dead only when both of its locks are free.
  rig.life(engine.life_name, Agent::Life::kFree);
  CHECK(rig.ledger.spans_of(SessionId(engine.session)).writers == 1);
  rig.life(resumed.life_name, Agent::Life::kFree);
  CHECK(rig.ledger.spans_of(SessionId(engine.session)).writers == 0);
}

TEST_CASE("a join whose stream ended while it was on its way is found dead by its lock",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const JoinId id = rig.start_join("e0");
  rig.agent->client_stream_ended(id, rig.now);
  rig.settle();
  const auto request = rig.take_sent(v1::LinkRequest::kOpenClient);
  v1::LinkResponse message;
  message.set_correlation(request.correlation());
  message.mutable_open_client()->set_session(101);
  rig.say(message);
  CHECK(rig.welcomes.empty());
  rig.pass(milliseconds(100));
  CHECK(rig.life_tests.back() == request.open_client().life_name());
  rig.life(request.open_client().life_name(), Agent::Life::kFree);
  answer_end(rig, v1::LinkRequest::kFenceClient);
  CHECK(rig.agent->client_count() == 0);
}

TEST_CASE(
    "a predecessor's clients are proven dead or come back; its pools follow the last importer",
    "[session][client]") {
  AgentRig rig;
  rig.agent->tick(rig.now);
  rig.settle();
  v1::OpenSessionResponse answer;
  answer.set_version(1);
  answer.mutable_store()->set_store_id(rig.store_id);
  answer.set_session(kWorkerSession);
  answer.mutable_limits()->set_operations_max(16);
  for (const uint64_t id : {61U, 62U}) {
    auto* info = answer.add_predecessor_clients();
    info->set_session(id);
    info->set_engine_id("old" + std::to_string(id));
    info->set_life_name("w0.old" + std::to_string(id) + ".life");
  }
  auto* orphan = answer.add_orphan_pools();
  orphan->set_pool(400);
  orphan->add_importers("w0.old61.life");
  orphan->add_importers("w0.old62.life");
  rig.agent->session_opened(rig.connection, answer, rig.now);
  rig.settle();
  // They belong to no worker now, so the re-attach does not list them.
  rig.welcome_reattach();
  rig.end_reattach();
  rig.welcome_link();
  rig.answer_pools();
  rig.pass(milliseconds(50));
  CHECK(rig.life_tests.size() >= 2);

  rig.life("w0.old61.life", Agent::Life::kFree);
  CHECK(rig.link_sent.back().fence_client().client_session() == 61);
  answer_end(rig, v1::LinkRequest::kFenceClient);

  const JoinId id = rig.start_join("old62", 62, "token62");
  CHECK(rig.link_sent.back().open_client().resume_session() == 62);
  const Engine resumed = rig.finish_join(id, 62);
  CHECK(rig.agent->client_count() == 1);
  // The engine still maps the old pool while it holds the old lock.
  CHECK(rig.count_sent(v1::LinkRequest::kReleaseOrphans) == 0);
  rig.life("w0.old62.life", Agent::Life::kFree);  // unmapped; the new lock lives on
  CHECK(rig.agent->client_count() == 1);
  CHECK(rig.link_sent.back().release_orphans().pools(0) == 400);
  answer_end(rig, v1::LinkRequest::kReleaseOrphans);
  rig.forget_sent();
  rig.pass(seconds(2));
  CHECK(rig.count_sent(v1::LinkRequest::kReleaseOrphans) == 0);
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 0);
}

TEST_CASE("a predecessor's client with two life locks is dead when both are free",
          "[session][client]") {
  AgentRig rig;
  rig.agent->tick(rig.now);
  rig.settle();
  v1::OpenSessionResponse answer;
  answer.set_version(1);
  answer.mutable_store()->set_store_id(rig.store_id);
  answer.set_session(kWorkerSession);
  for (const char* name : {"w0.a.life", "w0.b.life"}) {
    v1::ClientInfo& info = *answer.add_predecessor_clients();
    info.set_session(61);
    info.set_life_name(name);
  }
  rig.agent->session_opened(rig.connection, answer, rig.now);
  rig.settle();
  rig.welcome_reattach();
  rig.end_reattach();
  rig.welcome_link();
  rig.life("w0.a.life", Agent::Life::kFree);
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 0);
  rig.life("w0.b.life", Agent::Life::kFree);
  CHECK(rig.count_sent(v1::LinkRequest::kFenceClient) == 1);
}

TEST_CASE("a stopping worker takes nothing new and is idle once everything is back",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.agent->stop(rig.now);
  rig.settle();
  CHECK_FALSE(rig.agent->is_idle());
  CHECK(rig.store_codes(rig.begin_store(engine, 4, 1)) ==
        std::vector{v1::STORE_CODE_SKIPPED_UNAVAILABLE});
  rig.start_join("e1");
  CHECK(rig.ended_joins.back().error.reason == Reason::kUnavailable);
  rig.release(engine, 2001);
  rig.answer_release();
  CHECK(rig.agent->is_idle());
}

}  // namespace berth::worker
