// HOST pools between workers of a host, as the agent sees them: ours that a peer reads, and of
// others that our engines read.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {
namespace {

constexpr uint64_t kOtherPool = 900;
const PeerId kPeer(1);

v1::WorkerHello hello(uint64_t session = 20, const std::string& store = std::string(16, 's')) {
  v1::WorkerHello message;
  message.set_worker_name("w1");
  message.set_session(session);
  message.set_store_id(store);
  return message;
}

v1::SharedPool shared_pool(uint64_t pool = kOtherPool) {
  v1::SharedPool message;
  message.mutable_pool()->set_pool(pool);
  message.mutable_pool()->set_name("cpu");
  message.mutable_pool()->set_map_bytes(16 * kPage);
  message.set_life_name("w1.x" + std::to_string(pool) + ".life");
  message.set_worker_name("w1");
  return message;
}

struct Sharing : AgentRig {
  Sharing() { attach(); }

  void connect(const v1::WorkerHello& message = hello()) {
    agent->peer_connected(kPeer, message, now);
    settle();
  }
  void lock(const std::string& life_name) {
    REQUIRE(locks_wanted.size() == 1);
    const LockExport wanted = locks_wanted.front();
    locks_wanted.clear();
    agent->export_locked(wanted.peer, wanted.pool_slot, life_name, now);
    settle();
  }
  void allow(v1::LinkRequest::BodyCase kind) {
    v1::LinkResponse message;
    message.set_correlation(take_sent(kind).correlation());
    if (kind == v1::LinkRequest::kExportPool) message.mutable_export_pool();
    if (kind == v1::LinkRequest::kImportPool) message.mutable_import_pool();
    if (kind == v1::LinkRequest::kEndExports) message.mutable_end_exports();
    say(message);
  }
  void export_pool(const std::string& life_name = "w0.a.life") {
    connect();
    lock(life_name);
    allow(v1::LinkRequest::kExportPool);
  }
  void offer(uint64_t import, const v1::SharedPool& message = shared_pool()) {
    agent->import_offered(ImportId(import), message, now);
    settle();
  }
  void import_pool() {
    offer(1);
    allow(v1::LinkRequest::kImportPool);
  }
  void drop(uint64_t pool) {
    v1::LinkResponse message;
    message.mutable_drop_import()->set_pool(pool);
    say(message);
  }
};

TEST_CASE_METHOD(Sharing, "a pool is passed once the server has recorded its life lock",
                 "[session][sharing]") {
  CHECK(introduced.back() == SessionId(kWorkerSession));
  connect();
  lock("w0.a.life");
  CHECK(passed.empty());
  const v1::LinkRequest request = link_sent.back();
  CHECK(request.export_pool().pool() == kPoolId);
  CHECK(request.export_pool().importer() == 20);
  CHECK(request.export_pool().life_name() == "w0.a.life");
  allow(v1::LinkRequest::kExportPool);
  REQUIRE(passed.size() == 1);
  CHECK(passed[0].peer == kPeer);
  CHECK(passed[0].message.life_name() == "w0.a.life");
  CHECK(passed[0].message.pool().pool() == kPoolId);
  CHECK_FALSE(passed[0].message.pool().writable());
  pass(seconds(20));
  CHECK(locks_wanted.empty());  // once
}

TEST_CASE_METHOD(Sharing, "nothing is passed to a peer of another store, or to ourselves",
                 "[session][sharing]") {
  connect(hello(20, std::string(16, 'x')));
  agent->peer_connected(PeerId(2), hello(kWorkerSession), now);
  settle();
  pass(seconds(2));
  CHECK(locks_wanted.empty());
}

TEST_CASE("a private pool is never offered", "[session][sharing]") {
  AgentRig rig({.pools = {process_pool("mine", 16, "e")}});
  rig.attach();
  rig.agent->peer_connected(kPeer, hello(), rig.now);
  rig.settle();
  rig.pass(seconds(2));
  CHECK(rig.locks_wanted.empty());
}

TEST_CASE_METHOD(Sharing, "a refused export is tried again later under another lock",
                 "[session][sharing]") {
  connect();
  lock("w0.a.life");
  say_error(take_sent(v1::LinkRequest::kExportPool).correlation(), Reason::kLimitReached);
  CHECK(discarded == std::vector<std::string>{"w0.a.life"});
  CHECK(locks_wanted.empty());
  pass(seconds(6));
  lock("w0.b.life");
  allow(v1::LinkRequest::kExportPool);
  CHECK(passed.size() == 1);
}

TEST_CASE_METHOD(Sharing,
                 "an export is over when its life lock is free, and the server hears of it",
                 "[session][sharing]") {
  export_pool();
  agent->peer_ended(kPeer, now);
  settle();
  pass(seconds(2));
  CHECK(std::count(life_tests.begin(), life_tests.end(), "w0.a.life") > 0);
  life("w0.a.life", Agent::Life::kHeld);  // an engine of the dead peer reads on
  CHECK(count_sent(v1::LinkRequest::kEndExports) == 0);
  life("w0.a.life", Agent::Life::kFree);
  CHECK(link_sent.back().end_exports().life_names(0) == "w0.a.life");
  SECTION("and again over the next Link, until it answers") {
    lose_link();
    forget_sent();
    pass(seconds(3));
    attach();
    allow(v1::LinkRequest::kEndExports);
    pass(seconds(3));
    CHECK(count_sent(v1::LinkRequest::kEndExports) == 0);
  }
}

TEST_CASE_METHOD(Sharing,
                 "an export whose peer went while the server was asked is ended, not passed",
                 "[session][sharing]") {
  connect();
  lock("w0.a.life");
  agent->peer_ended(kPeer, now);
  settle();
  CHECK(discarded == std::vector<std::string>{"w0.a.life"});
  life("w0.a.life", Agent::Life::kFree);
  CHECK(count_sent(v1::LinkRequest::kEndExports) == 0);  // not before it is known to be recorded
  allow(v1::LinkRequest::kExportPool);
  CHECK(passed.empty());
  CHECK(count_sent(v1::LinkRequest::kEndExports) == 1);
}

TEST_CASE_METHOD(Sharing, "memory that a peer maps is not offered anew under another session",
                 "[session][sharing]") {
  export_pool();
  lose_link();
  pass(seconds(3));
  welcome_reattach(true);  // the server has another store
  CHECK(introduced.back() == SessionId());
  session_wanted.reset();
  pass(seconds(3));
  CHECK_FALSE(session_wanted);
  life("w0.a.life", Agent::Life::kFree);
  pass(seconds(3));
  CHECK(session_wanted);
}

TEST_CASE_METHOD(Sharing, "an imported pool is told to engines once the server knows of the import",
                 "[session][sharing]") {
  const Engine before = join("before");
  offer(1);
  CHECK(granted.empty());
  allow(v1::LinkRequest::kImportPool);
  REQUIRE(granted.size() == 1);
  CHECK(granted[0].client == SessionId(before.session));
  CHECK(granted[0].import == ImportId(1));
  CHECK(granted[0].pool.pool() == kOtherPool);
  join("after");
  CHECK(granted.size() == 2);
}

TEST_CASE_METHOD(Sharing, "a load reads an imported pool, and a re-attach states its lease",
                 "[session][sharing]") {
  import_pool();
  const Engine engine = join("e");
  const CallId call = load(engine, 1, 1);
  answer_acquire(300, {{.replica = 77, .offset = 8192, .pool = kOtherPool}});
  const auto loaded = reply<v1::LoadResponse>(call);
  REQUIRE(loaded.chunks() == 1);
  CHECK(loaded.pools(0) == kOtherPool);
  CHECK(loaded.offsets(0) == 8192);
  lose_link();
  pass(seconds(3));
  known_clients = {engine.session};
  welcome_reattach();
  bool is_stated = false;
  for (const v1::ReattachRequest& sent : reattach_sent)
    for (const v1::HeldLease& lease : sent.chunk().leases())
      is_stated |= lease.lease() == 300 && lease.replicas_size() == 1 && lease.replicas(0) == 77;
  CHECK(is_stated);
}

TEST_CASE_METHOD(Sharing, "a lease over our pool and an imported one ends as a whole",
                 "[session][sharing]") {
  import_pool();
  const Engine engine = join("e");
  const uint64_t own = ready(engine, 1, 40);
  load(engine, 5, 2);
  answer_acquire(300, {{.replica = own, .offset = ledger.find(ReplicaId(own))->offset},
                       {.replica = 77, .offset = 0, .pool = kOtherPool}});
  CHECK(ledger.spans_of(SessionId(engine.session)).readers == 2);
  release(engine, 300);
  CHECK(ledger.spans_of(SessionId(engine.session)).readers == 0);
  CHECK(ledger.leases().empty());
}

TEST_CASE_METHOD(Sharing,
                 "a place in a pool that was not imported is a miss and its lease goes back",
                 "[session][sharing]") {
  const Engine engine = join("e");
  const CallId call = load(engine, 1, 1);
  answer_acquire(300, {{.replica = 77, .offset = 0, .pool = kOtherPool}});
  CHECK(reply<v1::LoadResponse>(call).miss_reason() == v1::MISS_REASON_NOT_ACCESSIBLE);
  CHECK(link_sent.back().release().leases(0) == 300);
}

TEST_CASE_METHOD(Sharing,
                 "an import is let go when the server asks, it is refused, or its owner is gone",
                 "[session][sharing]") {
  import_pool();
  const Engine engine = join("e");
  SECTION("asked") { drop(kOtherPool); }
  SECTION("gone") {
    agent->import_ended(ImportId(1), now);
    settle();
  }
  SECTION("refused when it is stated to the next Link") {
    lose_link();
    pass(seconds(3));
    forget_sent();
    known_clients = {engine.session};
    attach();
    say_error(take_sent(v1::LinkRequest::kImportPool).correlation(), Reason::kUnknownPool);
  }
  CHECK(dropped == std::vector<ImportId>{ImportId(1)});
  CHECK(was_told(engine, v1::JoinResponse::kPoolGone));
  drop(kOtherPool);  // a repeat
  CHECK(dropped.size() == 1);
}

TEST_CASE_METHOD(Sharing, "a pool that is offered twice is held once", "[session][sharing]") {
  import_pool();
  offer(2);
  CHECK(dropped == std::vector<ImportId>{ImportId(2)});
}

}  // namespace
}  // namespace berth::worker
