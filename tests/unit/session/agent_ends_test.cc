// How things end when several ends meet: full windows, clients that leave while answers are under
// way, joins that are answered twice, a server that turns out to be another one. All of these once
// waited for ever; the simulator found them.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {
namespace {

TEST_CASE("a finish finds room in a full window, so that the window drains", "[session][store]") {
  AgentRig rig({.operations_max = 2});
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.begin_store(engine, 2, 1);
  rig.answer_reserve({v1::STORE_CODE_BEING_WRITTEN}, 0);
  CHECK(rig.refusal(rig.begin_store(engine, 3, 1)) == Reason::kOperationWindowFull);
  const CallId finish = rig.finish_store(engine, 3, {1001});
  rig.answer_commit({v1::COMMIT_CODE_COMMITTED});
  CHECK(rig.commit_codes(finish) == std::vector{v1::COMMIT_CODE_COMMITTED});
}

TEST_CASE("a client's end is told once its last answer is there, also when that is a refusal",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.load(engine, 1, 1);
  const uint64_t asked = rig.take_sent(v1::LinkRequest::kAcquire).correlation();
  rig.leave(engine);
  CHECK(rig.count_sent(v1::LinkRequest::kCloseSession) == 0);
  rig.say_error(asked, Reason::kLimitReached);
  CHECK(rig.count_sent(v1::LinkRequest::kCloseSession) == 1);
}

TEST_CASE("a session that a repeated join opened for nobody is closed", "[session][client]") {
  AgentRig rig;
  rig.attach();
  const JoinId id = rig.start_join("e0");
  const uint64_t asked = rig.link_sent.back().correlation();
  const Engine engine = rig.finish_join(id, 101);
  v1::LinkResponse again;
  again.set_correlation(asked);
  again.mutable_open_client()->set_session(engine.session);
  rig.say(again);  // the same session: nothing to do
  CHECK(rig.count_sent(v1::LinkRequest::kCloseSession) == 0);
  again.mutable_open_client()->set_session(102);  // the first one had ended when it came
  rig.say(again);
  CHECK(rig.take_sent(v1::LinkRequest::kCloseSession).close_session().client_session() == 102);
}

TEST_CASE("a worker that must drain refuses the resumes that wait, so that engines let go",
          "[session][client]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.agent->client_stream_ended(engine.join, rig.now);
  rig.lose_link();
  const JoinId waiting = rig.start_join("e0", engine.session, engine.token);
  rig.pass(seconds(1));
  rig.welcome_reattach(true);
  REQUIRE(rig.ended_joins.size() == 1);
  CHECK(rig.ended_joins[0].join == waiting);
  CHECK(rig.ended_joins[0].error.reason == Reason::kUnknownSession);
}

}  // namespace
}  // namespace berth::worker
