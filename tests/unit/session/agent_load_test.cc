// Loads: checked against the ledger, held by handles, given back.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {

TEST_CASE("a load names the spans of what the server protects, and holds them", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  const CallId call = rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  const auto response = rig.reply<v1::LoadResponse>(call);
  CHECK(response.handle() == 2001);
  CHECK(response.state() == v1::LOAD_STATE_COMPLETE);
  CHECK(response.chunks() == 1);
  CHECK(response.replicas(0) == 1001);
  CHECK(rig.ledger.find(ReplicaId(1001))->readers == 1);
}

TEST_CASE("a location that the ledger does not hold ends the prefix before it", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.ready(engine, 3, 1002);
  struct Row {
    const char* what;
    AgentRig::Place wrong;
  };
  uint64_t operation = 10;
  uint64_t lease = 2000;
  for (const Row& row : {Row{"another replica", {1009, kPage}}, Row{"another offset", {1002, 0}},
                         Row{"another size", {1002, kPage, kPoolId, 1}},
                         Row{"a pool that is not mapped", {1002, kPage, kPoolId + 9}}}) {
    INFO(row.what);
    const CallId call = rig.load(engine, ++operation, 3);
    rig.answer_acquire(++lease, {{1001, 0}, row.wrong, {1001, 0}});
    const auto response = rig.reply<v1::LoadResponse>(call);
    CHECK(response.chunks() == 1);
    CHECK(response.replicas_size() == 1);
    CHECK(response.miss_reason() == v1::MISS_REASON_NOT_ACCESSIBLE);
    const CallId none = rig.load(engine, ++operation, 1);
    rig.answer_acquire(++lease, {row.wrong});
    CHECK(rig.reply<v1::LoadResponse>(none).chunks() == 0);
    CHECK(rig.reply<v1::LoadResponse>(none).handle() == 0);
    REQUIRE(rig.count_sent(v1::LinkRequest::kRelease) == 1);
    CHECK(rig.link_sent.back().release().leases(0) == lease);
    rig.answer_release();
  }
  // That a pool of another worker is not mapped (yet, or any more) is no contradiction.
  CHECK(std::count(rig.notes.begin(), rig.notes.end(), "location_mismatch") == 6);
}

TEST_CASE("a release is answered at once and said until the server has heard it",
          "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const Engine other = rig.join("e1");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  CHECK(rig.reply<v1::WorkerReleaseResponse>(rig.release(other, 2001)).released() ==
        std::string(1, '\0'));
  CHECK(rig.reply<v1::WorkerReleaseResponse>(rig.release(engine, 2001)).released() ==
        std::string(1, '\1'));
  CHECK(rig.ledger.find(ReplicaId(1001))->readers == 0);
  // Twice is an answer, not a change.
  CHECK(rig.reply<v1::WorkerReleaseResponse>(rig.release(engine, 2001)).released() ==
        std::string(1, '\0'));
  CHECK(rig.ledger.leases().empty());
  rig.lose_link();
  rig.attach();
  CHECK(rig.link_sent.back().release().leases(0) == 2001);
  rig.answer_release();
  rig.pass(seconds(5));
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
}

namespace {

// A client that has loaded the same chunk under leases 2001 and on.
Engine join_and_load(AgentRig& rig, uint64_t loads) {
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  for (uint64_t i = 1; i <= loads; ++i) {
    rig.load(engine, 2 + i, 1);
    rig.answer_acquire(2000 + i, {{1001, 0}});
  }
  return engine;
}

RigOptions patient() {
  RigOptions options;
  options.operations_max = 128;
  options.release_within = milliseconds(10);
  return options;
}

}  // namespace

TEST_CASE("releases of a tick go together", "[session][load]") {
  AgentRig rig(patient());
  const Engine engine = join_and_load(rig, 4);
  for (const uint64_t lease : {2001u, 2002u, 2003u}) rig.release(engine, lease);
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
  CHECK(rig.ledger.find(ReplicaId(1001))->readers == 1);  // here they are back already
  rig.pass(milliseconds(50));
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases_size() == 3);
}

TEST_CASE("a release that comes while others are on their way waits for its own tick",
          "[session][load]") {
  AgentRig rig(patient());
  const Engine engine = join_and_load(rig, 2);
  rig.release(engine, 2001);
  rig.pass(milliseconds(50));
  rig.release(engine, 2002);
  rig.answer_release();
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
  rig.pass(milliseconds(50));
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 2002);
}

TEST_CASE("a release that the server asked for does not wait, nor do those beside it",
          "[session][load]") {
  AgentRig rig(patient());
  const Engine engine = join_and_load(rig, 2);
  rig.release(engine, 2001);
  rig.revoke(engine, 4, 2002);
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
  rig.release(engine, 2002);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases_size() == 2);
}

TEST_CASE("a revoke of a lease whose release waits sends it", "[session][load]") {
  AgentRig rig(patient());
  const Engine engine = join_and_load(rig, 1);
  rig.release(engine, 2001);
  rig.revoke(engine, 3, 2001);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 2001);
}

TEST_CASE("a client that leaves does not wait for its releases' company", "[session][load]") {
  AgentRig rig(patient());
  const Engine engine = join_and_load(rig, 1);
  rig.release(engine, 2001);
  rig.leave(engine);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 2001);
}

TEST_CASE("64 releases are company enough", "[session][load]") {
  AgentRig rig(patient());
  const Engine engine = join_and_load(rig, 64);
  for (uint64_t lease = 2001; lease < 2064; ++lease) rig.release(engine, lease);
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
  rig.release(engine, 2064);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases_size() == 64);
}

TEST_CASE("a handle of the predecessor is passed on, for the server to end", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  CHECK(rig.reply<v1::WorkerReleaseResponse>(rig.release(engine, 1999)).released() ==
        std::string(1, '\0'));
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 1999);
}

TEST_CASE("while the Link is down probes and loads miss at once", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId probe_caught = rig.probe(engine, 1);
  const CallId load_caught = rig.load(engine, 1, 1);
  rig.lose_link();
  const CallId probe = rig.probe(engine, 1);
  const CallId load = rig.load(engine, 2, 1);
  for (const CallId call : {probe_caught, probe}) {
    CHECK(rig.reply<v1::ProbeResponse>(call).miss_reason() == v1::MISS_REASON_UNAVAILABLE);
  }
  for (const CallId call : {load_caught, load}) {
    CHECK(rig.reply<v1::LoadResponse>(call).chunks() == 0);
    CHECK(rig.reply<v1::LoadResponse>(call).miss_reason() == v1::MISS_REASON_UNAVAILABLE);
  }
}

TEST_CASE("a lease whose answer was lost with the Link is found and given back",
          "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.lose_link();
  rig.attach();
  const auto resolve = rig.take_sent(v1::LinkRequest::kResolve);
  CHECK(resolve.resolve().operation() == 3);
  v1::LinkResponse answer;
  answer.set_correlation(resolve.correlation());
  answer.mutable_resolve()->set_outcome(v1::ResolveResponse::OUTCOME_COMMITTED);
  answer.mutable_resolve()->mutable_acquire()->set_lease(2001);
  rig.say(answer);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 2001);
}

TEST_CASE("a probe that the server does not answer is a miss in the end", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.probe(engine, 1);
  rig.pass(milliseconds(2100));
  CHECK(rig.reply<v1::ProbeResponse>(call).miss_reason() == v1::MISS_REASON_UNAVAILABLE);
}

TEST_CASE("a degraded store is told apart from an outage", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  const CallId call = rig.load(engine, 1, 1);
  rig.say_error(rig.take_sent(v1::LinkRequest::kAcquire).correlation(), Reason::kStoreDegraded);
  CHECK(rig.reply<v1::LoadResponse>(call).miss_reason() == v1::MISS_REASON_STORE_DEGRADED);
}

TEST_CASE("a revoke is passed on and waits for the reader; one that overtakes poisons the load",
          "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  rig.revoke(engine, 3, 2001);
  CHECK(rig.was_told(engine, v1::JoinResponse::kRevoke));
  rig.pass(seconds(60));
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
  rig.release(engine, 2001);
  rig.answer_release();

  const CallId call = rig.load(engine, 4, 1);
  rig.revoke(engine, 4, 2002);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 2002);
  rig.answer_acquire(2002, {{1001, 0}});
  CHECK(rig.reply<v1::LoadResponse>(call).handle() == 0);
  CHECK(rig.ledger.find(ReplicaId(1001))->readers == 0);
}

TEST_CASE("a lease from before this worker's time is given back when its engine says so",
          "[session][load][sharing]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.finish_join(rig.start_join("e0", 62, "token62"), 62);
  rig.revoke(engine, 3, 2001);
  CHECK(rig.was_told(engine, v1::JoinResponse::kRevoke));
  rig.pass(seconds(60));
  CHECK(rig.count_sent(v1::LinkRequest::kRelease) == 0);
  rig.release(engine, 2001);
  CHECK(rig.take_sent(v1::LinkRequest::kRelease).release().leases(0) == 2001);
}

TEST_CASE("only handles that are held are renewed", "[session][load]") {
  AgentRig rig;
  rig.attach();
  const Engine engine = rig.join("e0");
  rig.ready(engine, 1, 1001);
  rig.load(engine, 3, 1);
  rig.answer_acquire(2001, {{1001, 0}});
  v1::WorkerRenewRequest request;
  *request.mutable_caller() = rig.caller(engine);
  request.add_handles(2999);
  request.add_handles(2001);
  rig.agent->renew(CallId(7000), request, rig.now);
  rig.settle();
  const auto renew = rig.take_sent(v1::LinkRequest::kRenew);
  REQUIRE(renew.renew().leases_size() == 1);
  CHECK(renew.renew().leases(0) == 2001);
  v1::LinkResponse answer;
  answer.set_correlation(renew.correlation());
  answer.mutable_renew()->set_renewed(std::string(1, '\1'));
  rig.say(answer);
  CHECK(rig.reply<v1::WorkerRenewResponse>(CallId(7000)).renewed() == std::string("\0\1", 2));
}

}  // namespace berth::worker
