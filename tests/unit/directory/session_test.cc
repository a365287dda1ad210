// Identity: who may attach, who is fenced by what proof, what is left behind and until when it is
// charged.
#include "tests/unit/directory/world.h"

namespace berth {
namespace {

struct Fleet : World {
  NamespaceId ns = open_namespace();
  Worker worker = open_worker();
  PoolId pool = open_pool(worker, 64 * kPage);
  SessionId client = join(worker);

  OpenWorker successor() {
    ++next_token;
    return successor_command("w0");
  }
};

TEST_CASE("the epoch rises at every start, and ids of two epochs never meet",
          "[directory][epoch]") {
  World w;
  const Epoch first = w.directory.meta().epoch;
  const World::Worker a = w.open_worker();
  w.restart();
  CHECK(w.directory.meta().epoch == first + 1);
  CHECK(w.directory.meta().store_id == StoreId{1, 2});
  CHECK(epoch_of(w.open_worker("w1").session) > epoch_of(a.session));
}

TEST_CASE("a worker that saw a later epoch of this store lifts the server above it",
          "[directory][epoch]") {
  World w;
  OpenWorker open = w.worker_command("w0");
  open.epoch_seen = 40;
  SECTION("of this store") {
    open.store_id_seen = w.directory.meta().store_id;
    w.must<WorkerOpened>(open);
    CHECK(w.directory.meta().epoch == 41);
  }
  SECTION("not of another") {
    open.store_id_seen = StoreId{5, 5};
    const Epoch before = w.directory.meta().epoch;
    w.must<WorkerOpened>(open);
    CHECK(w.directory.meta().epoch == before);
  }
}

TEST_CASE_METHOD(Fleet, "a proof that was under way for long fences nobody who came after it",
                 "[directory][session]") {
  OpenWorker late = successor();  // of one that died before it arrived
  late.request_token = {7, 7};
  SECTION("a worker of its name") {
    const WorkerOpened live = must<WorkerOpened>(successor());
    const WorkerOpened answer = must<WorkerOpened>(late);
    CHECK_FALSE(answer.session.valid());
    CHECK(answer.prove_again == live.session);
    CHECK(directory.find<Session>(live.session) != nullptr);
    CHECK(directory.worker_by_name("w0") == live.session);
  }
  SECTION("anybody of the next boot of its node") {
    OpenWorker rebooted = worker_command("w1");
    rebooted.boot_id = {4, 4};
    const SessionId live = must<WorkerOpened>(rebooted).session;
    late.name = "w2";
    CHECK(must<WorkerOpened>(late).prove_again == live);
    CHECK(directory.find<Session>(live) != nullptr);
  }
  SECTION("and who is alive says it again") {
    late.proven_at = SessionId();
    const WorkerOpened answer = must<WorkerOpened>(late);
    CHECK(answer.prove_again == worker.session);
    CHECK(directory.find<Session>(worker.session) != nullptr);
    late.proven_at = answer.prove_again;
    CHECK(must<WorkerOpened>(late).session.valid());
    CHECK(directory.find<Session>(worker.session) == nullptr);
  }
}

TEST_CASE_METHOD(Fleet, "of two live workers of one name the second is refused",
                 "[directory][session][FC-14]") {
  ++next_token;
  CHECK(refused(worker_command("w0")) == Reason::kNameInUse);
  OpenWorker elsewhere = worker_command("w0", "host-b");
  elsewhere.life_lock_held = true;  // proves nothing about another host
  CHECK(refused(elsewhere) == Reason::kNameInUse);
  CHECK(directory.find<Session>(worker.session) != nullptr);
}

TEST_CASE_METHOD(Fleet, "a retried OpenSession returns the session that the first try made",
                 "[directory][session]") {
  ++next_token;
  const OpenWorker open = worker_command("w9");
  const WorkerOpened first = must<WorkerOpened>(open);
  CHECK(must<WorkerOpened>(open).session == first.session);
}

TEST_CASE_METHOD(
    Fleet, "the life lock fences the predecessor; its memory stays charged until nobody maps it",
    "[directory][session]") {
  store(worker, client, ns, {1, 2});
  acquire(worker, client, ns, {1});
  reserve(worker, client, ns, {3});
  const WorkerOpened opened = must<WorkerOpened>(successor());
  REQUIRE(opened.predecessor_clients.size() == 1);
  CHECK(opened.predecessor_clients[0].life_name == "engine-1.life");
  REQUIRE(opened.orphan_pools.size() == 1);
  CHECK(opened.orphan_pools[0].importers == std::vector<std::string>{"engine-1.life"});
  CHECK(directory.find<Session>(worker.session) == nullptr);
  CHECK(directory.find<Session>(client) != nullptr);

  drain_jobs();
  CHECK(directory.replicas().size() == 0);
  REQUIRE(directory.find_pool(pool) != nullptr);
  CHECK(directory.find_pool(pool)->pool.spec.backing_bytes == 64 * kPage);

  Worker next{opened.session, opened.incarnation};
  reattach(next);
  must<Done>(ReleaseOrphans{next.caller(), {pool}});
  CHECK(directory.find_pool(pool) == nullptr);
  must<Done>(ReleaseOrphans{next.caller(), {pool}});  // a repeat
}

TEST_CASE_METHOD(Fleet,
                 "orphans that are released before their replicas are dropped go when the job ends",
                 "[directory][session]") {
  store(worker, client, ns, {1, 2});
  const WorkerOpened opened = must<WorkerOpened>(successor());
  Worker next{opened.session, opened.incarnation};
  reattach(next);
  must<Done>(ReleaseOrphans{next.caller(), {pool}});
  CHECK(directory.find_pool(pool) != nullptr);
  drain_jobs();
  CHECK(directory.find_pool(pool) == nullptr);
}

TEST_CASE_METHOD(Fleet, "an engine resumes its session through the restarted worker",
                 "[directory][session]") {
  const Reserve lost = reserve_command(worker, client, ns, {1});
  must<Reserved>(lost);
  const WorkerOpened opened = must<WorkerOpened>(successor());
  drain_jobs();
  Worker next{opened.session, opened.incarnation};
  reattach(next);
  open_pool(next, 64 * kPage);
  OpenClient open;
  open.caller = next.caller();
  open.request_token = {8, 8};
  open.engine_id = "engine-1";
  open.life_name = "second.life";
  open.resume_session = client;
  open.resume_token = directory.find<Session>(client)->token;
  CHECK(must<ClientOpened>(open).session == client);

  Reserve repeat = lost;
  repeat.id.caller = next.caller();
  CHECK(codes_text(must<Reserved>(repeat).codes) == "skipped_dropped");
  CHECK(codes_text(reserve(next, client, ns, {1}).codes) == "granted");

  open.request_token = {8, 9};
  open.resume_token = {0, 1};
  CHECK(refused(open) == Reason::kWrongToken);
}

TEST_CASE_METHOD(Fleet, "another boot of the node proves all of the old one gone",
                 "[directory][session]") {
  store(worker, client, ns, {1});
  ++next_token;
  OpenWorker open = worker_command("w0");
  open.boot_id = {4, 4};
  const WorkerOpened opened = must<WorkerOpened>(open);
  CHECK(opened.predecessor_clients.empty());
  drain_jobs();
  CHECK(directory.find<Session>(client) == nullptr);
  CHECK(directory.find_pool(pool) == nullptr);
  CHECK(directory.sessions().size() == 1);
}

TEST_CASE_METHOD(Fleet, "crash loops leave no trace once the dead are proven dead",
                 "[directory][session][FC-05]") {
  Worker current = worker;
  SessionId engine = client;
  PoolId held = pool;
  for (int round = 0; round < 50; ++round) {
    store(current, engine, ns, {1, 2, 3});
    const WorkerOpened opened = must<WorkerOpened>(successor());
    current = {opened.session, opened.incarnation};
    reattach(current);
    for (const ClientLeft& left : opened.predecessor_clients)
      must<Done>(FenceClient{current.caller(), left.session});
    for (const OrphanPool& orphan : opened.orphan_pools)
      must<Done>(ReleaseOrphans{current.caller(), {orphan.pool}});
    drain_jobs();
    held = open_pool(current, 64 * kPage);
    next_offset = 0;
    engine = join(current);
  }
  CHECK(directory.sessions().size() == 2);
  CHECK(directory.pools().size() == 1);
  CHECK(directory.replicas().size() == 0);
  CHECK(directory.leases().size() + directory.operations().size() + directory.jobs().size() == 0);
}

TEST_CASE_METHOD(Fleet, "an operator fences with a reason, a session or a whole node",
                 "[directory][session]") {
  store(worker, client, ns, {1});
  CHECK(refused(FenceByOperator{client, "", "", false}) == Reason::kInvalidArgument);
  CHECK(refused(FenceByOperator{client, "host-a", "both named", false}) ==
        Reason::kInvalidArgument);
  CHECK(refused(FenceByOperator{SessionId(999), "", "typo", false}) == Reason::kUnknownSession);
  CHECK(
      must<Fenced>(FenceByOperator{SessionId(), "host-a", "host is gone", false}).sessions.size() ==
      2);
  CHECK(needs_sync);
  drain_jobs();
  CHECK(directory.sessions().empty());
  CHECK(directory.pools().empty());
}

TEST_CASE_METHOD(Fleet, "commands of an older incarnation are refused", "[directory][session]") {
  const Worker before = worker;
  reattach(worker, pool, {}, {}, {client});
  CHECK(refused(reserve_command(before, client, ns, {1})) == Reason::kStaleIncarnation);
  CHECK(codes_text(reserve(worker, client, ns, {1}).codes) == "granted");
}

TEST_CASE_METHOD(Fleet,
                 "a silent worker is hidden, not freed, and seen again at its next heartbeat",
                 "[directory][time][FC-13]") {
  store(worker, client, ns, {1});
  now = now + config.heartbeat_deadline;
  must<Ticked>(Tick{});
  CHECK(probe_chunks(client, ns, {1}).miss == MissReason::kOwnerSilent);
  CHECK(usage(pool).ready_replicas == 1);
  must<Done>(Heartbeat{worker.caller(), {}, {}});
  CHECK(probe_chunks(client, ns, {1}).classes.size() == 1);
}

TEST_CASE_METHOD(Fleet, "a fenced client may do nothing more", "[directory][session]") {
  must<Done>(FenceClient{worker.caller(), client});
  CHECK(refused(reserve_command(worker, client, ns, {1})) == Reason::kSessionFenced);
  must<Done>(FenceClient{worker.caller(), client});  // a repeat
  drain_jobs();
  CHECK(refused(reserve_command(worker, client, ns, {1})) == Reason::kUnknownSession);
}

TEST_CASE_METHOD(Fleet, "a worker cannot act for a client of another", "[directory][session]") {
  const Worker second = open_worker("w1");
  CHECK(refused(reserve_command(second, client, ns, {1})) == Reason::kPermissionDenied);
  CHECK(refused(FenceClient{second.caller(), client}) == Reason::kPermissionDenied);
  CHECK(refused(ReleaseOrphans{second.caller(), {pool}}) == Reason::kPermissionDenied);
}

TEST_CASE_METHOD(Fleet,
                 "ending a session of many reservations goes in slices that a restart resumes",
                 "[directory][jobs][FC-58]") {
  config.slice_records = 4;
  for (int i = 0; i < 6; ++i) reserve(worker, client, ns, {10 * i, 10 * i + 1, 10 * i + 2});
  must<Done>(FenceClient{worker.caller(), client});
  REQUIRE(directory.jobs().size() == 1);
  CHECK(must<JobRan>(RunJob{directory.jobs().begin()->first}).more);
  restart();
  REQUIRE(directory.jobs().size() == 1);
  drain_jobs();
  CHECK(usage(pool).retiring_replicas == 18);
  CHECK(directory.find<Session>(client) == nullptr);
}

TEST_CASE("a namespace opens again only with every field equal", "[directory][namespace]") {
  World w;
  w.open_namespace();
  OpenNamespace open;
  open.spec = w.directory.namespaces().begin()->second.spec;
  CHECK(w.must<NamespaceOpened>(open).id == NamespaceId(1));
  SECTION("model") { open.spec.model = "x"; }
  SECTION("dtype") { open.spec.dtype = "fp8"; }
  SECTION("layers") { open.spec.layers = 3; }
  SECTION("shards") { open.spec.shards = 3; }
  SECTION("tokenizer") { open.spec.tokenizer = "t"; }
  SECTION("chunk tokens") { open.spec.chunk_tokens = 256; }
  SECTION("digest width") { open.spec.digest_bytes = 32; }
  CHECK(w.refused(open) == Reason::kNamespaceMismatch);
}

TEST_CASE_METHOD(Fleet, "pools of a host never exceed its budget", "[directory][pool]") {
  config.host_budget_by_node["host-a"] = 100 * kPage;
  RegisterPool command;
  command.caller = worker.caller();
  command.spec = directory.find_pool(pool)->pool.spec;
  command.spec.name = "second";
  CHECK(refused(command) == Reason::kBudgetExceeded);
  command.spec.capacity_bytes = command.spec.backing_bytes = command.spec.budget_bytes = 36 * kPage;
  must<PoolRegistered>(command);
}

TEST_CASE_METHOD(Fleet, "a pool registered again with the same figures is the same pool",
                 "[directory][pool]") {
  CHECK(open_pool(worker, 64 * kPage) == pool);
  RegisterPool command;
  command.caller = worker.caller();
  command.spec = directory.find_pool(pool)->pool.spec;
  command.spec.capacity_bytes = command.spec.backing_bytes = 65 * kPage;
  CHECK(refused(command) == Reason::kIdInUse);
}

TEST_CASE_METHOD(
    Fleet, "a closing pool grants nothing, retires what it holds and goes with its last replica",
    "[directory][pool]") {
  const std::vector<ReplicaId> stored = store(worker, client, ns, {1, 2});
  const Reserved open = reserve(worker, client, ns, {3});
  const Acquired lease = acquire(worker, client, ns, {1});
  CHECK(must<PoolClosing>(ClosePool{worker.caller(), pool}).replicas_left == 3);
  drain_jobs();
  CHECK(codes_text(reserve(worker, client, ns, {4}).codes) == "skipped_no_pool");
  must<PerItem>(ReclaimAck{worker.caller(), stored});
  CHECK(must<PoolClosing>(ClosePool{worker.caller(), pool}).replicas_left == 2);
  must<PerItem>(Release{worker.caller(), client, {lease.lease}});
  must<PerItem>(ReclaimAck{worker.caller(), stored});
  must<Committed>(commit_command(worker, client, {open.first}));
  CHECK(replica(open.first).state == ReplicaState::kRetiring);
  must<PerItem>(ReclaimAck{worker.caller(), {open.first}});
  CHECK(directory.find_pool(pool) == nullptr);
  CHECK(must<PoolClosing>(ClosePool{worker.caller(), pool}).replicas_left == 0);
}

}  // namespace
}  // namespace berth
