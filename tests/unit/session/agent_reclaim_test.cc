// Reclaims and their acknowledgements.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {

using Ids = std::vector<uint64_t>;

TEST_CASE("what is free is acknowledged at once, and again when it is asked again",
          "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.reclaim(1001);
  CHECK(rig.take_acknowledged() == Ids{1001});
  CHECK(rig.ledger.usage(PoolId(kPoolId))->allocated_bytes == 0);
  rig.reclaim(1001);
  CHECK(rig.take_acknowledged() == Ids{1001});
  rig.reclaim(1777);  // never held: holds no memory
  CHECK(rig.take_acknowledged() == Ids{1777});
}

TEST_CASE("a span that is out puts the acknowledgement off until it is back",
          "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.reclaim(1001);
  CHECK(rig.take_acknowledged().empty());
  CHECK(rig.ledger.usage(PoolId(kPoolId))->allocated_bytes == kPage);
  rig.release(engine, 2001);
  CHECK(rig.take_acknowledged() == Ids{1001});
  CHECK(rig.ledger.usage(PoolId(kPoolId))->allocated_bytes == 0);
}

TEST_CASE("a reclaim of what is being written stops the writer first", "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  rig.reclaim(1001);
  CHECK(rig.was_told(engine, v1::JoinResponse::kCancel));
  CHECK(rig.take_acknowledged().empty());
  rig.abort_store(engine, {1001});
  CHECK(rig.take_acknowledged() == Ids{1001});
}

TEST_CASE("a reclaim that overtakes the commit's answer is acknowledged, and the answer stands",
          "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.begin_store(engine, 1, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1001);
  const CallId call = rig.finish_store(engine, 2, {1001});
  rig.reclaim(1001);
  CHECK(rig.take_acknowledged() == Ids{1001});
  rig.answer_commit({v1::COMMIT_CODE_COMMITTED});
  CHECK(rig.commit_codes(call) == std::vector{v1::COMMIT_CODE_COMMITTED});
}

TEST_CASE("an acknowledgement that an outage may have swallowed is part of the re-attach",
          "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.reclaim(1001);
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach();
  REQUIRE(rig.reattach_sent.size() == 3);
  CHECK(rig.reattach_sent[1].chunk().states(0) == v1::LEDGER_STATE_RECLAIMED);
  rig.judge_all(v1::LEDGER_VERDICT_FREE);
  CHECK(rig.ledger.entry_count() == 0);
}

TEST_CASE("an acknowledgement is forgotten when a later heartbeat was seen", "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  const uint64_t before = rig.take_sent(v1::LinkRequest::kHeartbeat).heartbeat().sequence();
  rig.reclaim(1001);
  v1::LinkResponse seen;
  seen.mutable_heartbeat_seen()->set_sequence(before);
  rig.say(seen);
  CHECK(rig.ledger.reclaimed_count() == 1);
  rig.pass(milliseconds(1100));
  seen.mutable_heartbeat_seen()->set_sequence(
      rig.take_sent(v1::LinkRequest::kHeartbeat).heartbeat().sequence());
  rig.say(seen);
  CHECK(rig.ledger.reclaimed_count() == 0);
}

TEST_CASE("a reclaim verdict of a re-attach is acknowledged over the Link", "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.lose_link();
  rig.pass(milliseconds(100));
  rig.welcome_reattach();
  rig.judge_all(v1::LEDGER_VERDICT_RECLAIM);
  rig.end_reattach();
  rig.welcome_link();
  CHECK(rig.take_acknowledged() == Ids{1001});
}

TEST_CASE("heartbeats report what each pool holds", "[session][reclaim]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.begin_store(engine, 3, 1);
  rig.answer_reserve({v1::STORE_CODE_GRANTED}, 1002);
  rig.pass(milliseconds(1100));
  const auto heartbeat = rig.take_sent(v1::LinkRequest::kHeartbeat).heartbeat();
  REQUIRE(heartbeat.pools_size() == 1);
  CHECK(heartbeat.pools(0).pool() == kPoolId);
  CHECK(heartbeat.pools(0).writing_bytes() == kPage);
  CHECK(heartbeat.pools(0).free_bytes() == 14 * kPage);
  CHECK(heartbeat.pools(0).largest_hole_bytes() == 14 * kPage);
  CHECK(heartbeat.pools(0).spans_out() == 1);
}

}  // namespace berth::worker
