#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/ctl/fake_admin.h"

namespace berth::ctl {
namespace {

using Json = nlohmann::json;

// One worker with a live pool and a quarantined page, one dead worker whose memory is still
// charged.
void fill_usage(FakeAdmin& admin) {
  v1::PoolRow& live = *admin.usage.add_pools();
  live.set_pool(id3(2));
  live.set_state(v1::POOL_STATE_LIVE);
  live.set_owner(id3(1));
  live.set_owner_name("w0");
  live.set_node("gpu-1");
  live.mutable_spec()->set_name("cpu");
  live.mutable_spec()->set_medium(v1::MEDIUM_CPU);
  live.mutable_spec()->set_tier(v1::TIER_L1);
  live.mutable_spec()->set_scope(v1::SCOPE_HOST);
  live.mutable_spec()->set_capacity_bytes(1 << 30);
  live.mutable_spec()->set_page_bytes(4096);
  v1::PoolUsage& usage = *live.mutable_usage();
  usage.set_capacity_bytes(1 << 30);
  usage.set_budget_bytes(1 << 30);
  usage.set_backing_bytes((1 << 30) + 4096);
  usage.set_pinned_bytes(1 << 20);
  usage.set_allocated_bytes(20480);
  usage.set_reserved_bytes(4096);
  usage.set_ready_bytes(6000);
  usage.set_ready_allocated_bytes(8192);
  usage.set_retiring_bytes(4096);
  usage.set_quarantined_bytes(4096);
  usage.set_ready_replicas(2);

  v1::PoolRow& gone = *admin.usage.add_pools();
  gone.set_pool(id3(5));
  gone.set_state(v1::POOL_STATE_GONE);
  gone.set_owner_name("w1");
  gone.set_node("gpu-1");
  gone.mutable_spec()->set_name("cpu");
  gone.mutable_usage()->set_backing_bytes(1 << 20);
  gone.add_importers("w1.c7.life");

  v1::NodeRow& node = *admin.usage.add_nodes();
  node.set_node("gpu-1");
  node.set_pools(2);
  node.set_backing_bytes((1 << 30) + 4096 + (1 << 20));
  node.set_gone_bytes(1 << 20);

  v1::NamespaceRow& space = *admin.usage.add_namespaces();
  space.set_namespace_id(id3(9));
  space.mutable_spec()->set_name("chat-8b");
  space.set_allocated_bytes(20480);
  space.set_ready_bytes(6000);
  space.set_replicas(4);

  admin.pools = {admin.usage.pools().begin(), admin.usage.pools().end()};
  admin.status.set_health(v1::HEALTH_SERVING);
}

v1::ReplicaRow replica(uint64_t counter) {
  v1::ReplicaRow row;
  row.set_replica(id3(counter));
  row.set_namespace_name("chat-8b");
  row.set_digest(std::string(16, '\x5a'));
  row.set_pool(id3(2));
  row.set_pool_name("cpu");
  row.set_size_bytes(4096);
  row.set_state(v1::REPLICA_STATE_READY);
  row.set_readable(true);
  return row;
}

Json json_of(const Ran& ran) {
  CAPTURE(ran.err);
  REQUIRE(ran.exit_code == 0);
  return Json::parse(ran.out);
}

}  // namespace

TEST_CASE("usage shows every pool, sums per worker and node, and the namespaces", "[ctl][usage]") {
  FakeServer server;
  fill_usage(server.admin);

  const Ran table = run_against(server, {"usage"});
  CHECK(table.exit_code == 0);
  CHECK(table.err.empty());
  CHECK(table.out ==
        "POOL  NAME  WORKER  STATE  CAPACITY  BACKING  ALLOCATED  RESERVED   READY  READY-ALLOC  "
        "RETIRING  QUARANTINED  PINNED  PINS\n"
        "e3-2  cpu   w0      live       1GiB   1.0GiB      20KiB      4KiB  5.9KiB         8KiB  "
        "    4KiB         4KiB    1MiB     0\n"
        "e3-5  cpu   w1      gone         0B     1MiB         0B        0B      0B           0B  "
        "      0B           0B      0B     0\n"
        "\n"
        "WORKER  NODE   POOLS  CAPACITY  BACKING  ALLOCATED  RESERVED   READY  READY-ALLOC  "
        "RETIRING  QUARANTINED  PINNED  PINS\n"
        "w0      gpu-1      1      1GiB   1.0GiB      20KiB      4KiB  5.9KiB         8KiB  "
        "    4KiB         4KiB    1MiB     0\n"
        "w1      gpu-1      1        0B     1MiB         0B        0B      0B           0B  "
        "      0B           0B      0B     0\n"
        "\n"
        "NODE   POOLS  LIMIT  GONE  CAPACITY  BACKING  ALLOCATED  RESERVED   READY  READY-ALLOC  "
        "RETIRING  QUARANTINED  PINNED  PINS\n"
        "gpu-1      2      -  1MiB      1GiB   1.0GiB      20KiB      4KiB  5.9KiB         8KiB  "
        "    4KiB         4KiB    1MiB     0\n"
        "\n"
        "NAMESPACE  QUOTA  ALLOCATED   READY  REPLICAS\n"
        "chat-8b        -      20KiB  5.9KiB         4\n");

  const Json json = json_of(run_against(server, {"usage", "--json"}));
  CHECK(json["pools"][0]["pool"] == "e3-2");
  CHECK(json["pools"][0]["capacity_bytes"] == 1073741824);
  CHECK(json["pools"][0]["ready_bytes"] == 6000);
  CHECK(json["pools"][0]["medium"] == "cpu");
  CHECK(json["pools"][0]["scope"] == "host");
  CHECK(json["pools"][1]["state"] == "gone");
  CHECK(json["workers"][0]["quarantined_bytes"] == 4096);
  CHECK(json["workers"][1]["session"].is_null());
  CHECK(json["nodes"][0]["backing_bytes"] == 1074794496);
  CHECK(json["nodes"][0]["gone_bytes"] == 1048576);
  CHECK(json["namespaces"][0]["quota_bytes"].is_null());

  const Ran csv = run_against(server, {"usage", "--csv"});
  CHECK(csv.out.find("table,pool,name,worker,node,medium,tier,scope,state,exported_to,"
                     "capacity_bytes,") == 0);
  CHECK(csv.out.find("\npools,e3-2,cpu,w0,gpu-1,cpu,l1,host,live,,1073741824,1073741824,"
                     "1073745920,20480,4096,6000,8192,4096,4096,1048576,2,") != std::string::npos);
}

TEST_CASE("usage tells an empty, a degraded, a starting and an absent server apart",
          "[ctl][usage]") {
  FakeServer server;
  server.admin.status.set_health(v1::HEALTH_SERVING);

  SECTION("empty: there is nothing to show, and that is fine") {
    const Ran ran = run_against(server, {"usage"});
    CHECK(ran.exit_code == 0);
    CHECK(ran.out == "No pools: the server is ready, but no worker has registered one yet.\n");
    CHECK(ran.err.empty());
    const Json json = json_of(run_against(server, {"usage", "--json"}));
    CHECK(json["pools"].empty());
    CHECK(json["nodes"].empty());
  }
  SECTION("degraded: the figures are there, with a note") {
    fill_usage(server.admin);
    server.admin.status.set_health(v1::HEALTH_DEGRADED);
    server.admin.status.set_health_reason("No space left on device");
    const Ran ran = run_against(server, {"usage"});
    CHECK(ran.exit_code == 0);
    CHECK(ran.out.find("e3-2") != std::string::npos);
    CHECK(ran.err == "berthctl usage: note: server " + server.address() +
                         " is degraded: No space left on device\n");
  }
  SECTION("starting: nothing is known yet") {
    server.admin.status.set_health(v1::HEALTH_STARTING);
    const Ran ran = run_against(server, {"usage"});
    CHECK(ran.exit_code == 4);
    CHECK(ran.out.empty());
    CHECK(ran.err.find("is starting") != std::string::npos);
  }
  SECTION("absent") {
    server.stop();
    const Ran ran = run_against(server, {"usage"});
    CHECK(ran.exit_code == 3);
    CHECK(ran.out.empty());
    CHECK(ran.err.find("server " + server.address() + " cannot be reached") != std::string::npos);
    CHECK(ran.err.find("Start berthd there") != std::string::npos);
  }
}

TEST_CASE("usage says how many pools are hidden and why", "[ctl][usage]") {
  FakeServer server;
  fill_usage(server.admin);
  server.admin.usage.mutable_pools(0)->set_state(v1::POOL_STATE_UNVERIFIED);
  server.admin.usage.mutable_pools(1)->set_state(v1::POOL_STATE_SILENT);
  const Ran ran = run_against(server, {"usage"});
  CHECK(ran.exit_code == 0);
  CHECK(ran.err ==
        "berthctl usage: note: 1 of 2 pools are hidden until their workers re-attach\n"
        "berthctl usage: note: 1 of 2 pools are hidden because their workers missed their "
        "heartbeats\n");
}

TEST_CASE("status is a record whose exit code says whether the server serves", "[ctl][status]") {
  FakeServer server;
  v1::GetStatusResponse& status = server.admin.status;
  status.set_health(v1::HEALTH_SERVING);
  status.set_version("0.1.0");
  status.mutable_store()->set_store_id(std::string(16, '\x11'));
  status.mutable_store()->set_epoch(3);
  status.set_uptime_ms(90'000);
  status.set_objects(5);

  const Ran table = run_against(server, {"status"});
  CHECK(table.exit_code == 0);
  CHECK(table.out.find("Health            serving\n") == 0);
  CHECK(table.out.find("Store             11111111111111111111111111111111\n") !=
        std::string::npos);
  CHECK(table.out.find("Up for            90s\n") != std::string::npos);

  const Json json = json_of(run_against(server, {"status", "--json"}));
  CHECK(json["health"] == "serving");
  CHECK(json["epoch"] == 3);
  CHECK(json["objects"] == 5);
  CHECK(json["uptime_ms"] == 90'000);

  const Ran csv = run_against(server, {"status", "--csv"});
  CHECK(csv.out.find("health,health_reason,version,store_id,epoch,") == 0);
  CHECK(csv.out.find("\nserving,,0.1.0,11111111111111111111111111111111,3,") != std::string::npos);

  status.set_health(v1::HEALTH_DEGRADED);
  const Ran degraded = run_against(server, {"status"});
  CHECK(degraded.exit_code == 4);
  CHECK(degraded.out.find("degraded") != std::string::npos);
}

TEST_CASE("a state that only a newer server knows is shown by its number", "[ctl][pools]") {
  FakeServer server;
  fill_usage(server.admin);
  server.admin.pools[0].set_state(static_cast<v1::PoolState>(77));
  CHECK(json_of(run_against(server, {"pools", "--json"}))["pools"][0]["state"] == "77");
}

TEST_CASE("pools shows what a pool is and who may still map a gone one", "[ctl][pools]") {
  FakeServer server;
  fill_usage(server.admin);
  server.admin.pools[0].set_largest_hole_bytes(8192);
  const Json json = json_of(run_against(server, {"pools", "--json"}));
  CHECK(json["more"] == false);
  CHECK(json["pools"][0]["page_bytes"] == 4096);
  CHECK(json["pools"][0]["largest_hole_bytes"] == 8192);
  CHECK(json["pools"][0]["session"] == "e3-1");
  CHECK(json["pools"][1]["importers"] == Json::array({"w1.c7.life"}));
  const Ran table = run_against(server, {"pools"});
  CHECK(table.out.find("POOL  NAME  WORKER  NODE   MEDIUM  TIER  SCOPE  STATE  CAPACITY") == 0);
  CHECK(table.out.find("w1.c7.life\n") != std::string::npos);
  CHECK(run_against(server, {"pools", "--csv"}).out.find("\ne3-5,cpu,w1,,gpu-1,") !=
        std::string::npos);
}

TEST_CASE("pools and usage name the workers that import a pool, and how far each is",
          "[ctl][pools][sharing]") {
  FakeServer server;
  fill_usage(server.admin);
  const auto export_to = [&](v1::PoolRow& pool, const std::string& worker, uint64_t session,
                             bool imported) {
    v1::PoolExport& one = *pool.add_exports();
    one.set_worker(worker);
    one.set_session(session);
    one.set_imported(imported);
  };
  for (v1::PoolRow* pool : {server.admin.usage.mutable_pools(0), &server.admin.pools[0]}) {
    export_to(*pool, "w3", id3(9), false);
    export_to(*pool, "w2", id3(8), true);
    export_to(*pool, "w2", 0, false);
  }
  const Json importers = Json::array({"w2", "w2 (dead)", "w3 (passed)"});
  CHECK(json_of(run_against(server, {"pools", "--json"}))["pools"][0]["exported_to"] == importers);
  CHECK(json_of(run_against(server, {"usage", "--json"}))["pools"][0]["exported_to"] == importers);
  CHECK_THAT(run_against(server, {"pools"}).out, Catch::Contains("w2 (dead)"));
}

TEST_CASE("sessions shows workers with their heartbeat and engines with their worker",
          "[ctl][sessions]") {
  FakeServer server;
  v1::SessionRow worker;
  worker.set_session(id3(1));
  worker.set_role(v1::ROLE_WORKER);
  worker.set_state(v1::SESSION_STATE_ATTACHED);
  worker.set_name("w0");
  worker.set_node("gpu-1");
  worker.set_heartbeat_age_ms(120);
  worker.set_incarnation(2);
  worker.set_version(1);
  v1::SessionRow client;
  client.set_session(id3(4));
  client.set_role(v1::ROLE_CLIENT);
  client.set_state(v1::SESSION_STATE_DETACHED);
  client.set_name("vllm-0");
  client.set_node("gpu-1");
  client.set_worker(id3(1));
  client.set_worker_name("w0");
  client.set_heartbeat_age_ms(-1);
  server.admin.sessions = {worker, client};

  CHECK(run_against(server, {"sessions"}).out ==
        "SESSION  ROLE    NAME    STATE     NODE   WORKER  HEARTBEAT  INCARNATION  POOLS  LEASES  "
        "RESERVATIONS  OPERATIONS  PROTOCOL\n"
        "e3-1     worker  w0      attached  gpu-1  -           120ms            2      0       0  "
        "           0           0         1\n"
        "e3-4     client  vllm-0  detached  gpu-1  w0              -            0      0       0  "
        "           0           0         0\n");
  const Json json = json_of(run_against(server, {"sessions", "--json"}));
  CHECK(json["sessions"][0]["worker_session"].is_null());
  CHECK(json["sessions"][1]["worker_session"] == "e3-1");
  CHECK(json["sessions"][1]["heartbeat_age_ms"].is_null());
}

TEST_CASE("namespaces shows the layout, and set-quota sends an exact size", "[ctl][namespaces]") {
  FakeServer server;
  v1::NamespaceRow row;
  row.set_namespace_id(id3(9));
  row.mutable_spec()->set_name("chat-8b");
  row.mutable_spec()->set_model("llama-3-8b@3f1c9e");
  row.mutable_spec()->set_dtype("bf16");
  row.mutable_spec()->set_chunk_tokens(512);
  row.mutable_spec()->set_shards(2);
  row.mutable_spec()->set_parts(1);
  row.mutable_spec()->set_digest_bytes(16);
  row.set_fingerprint(std::string(16, '\x22'));
  row.set_quota_bytes(1 << 30);
  server.admin.namespaces = {row};

  CHECK(
      run_against(server, {"namespaces"}).out ==
      "ID    NAMESPACE  MODEL              DTYPE  CHUNK  SHARDS  PARTS  DIGEST  QUOTA  ALLOCATED  "
      "READY  REPLICAS\n"
      "e3-9  chat-8b    llama-3-8b@3f1c9e  bf16     512       2      1      16   1GiB         0B  "
      "   0B         0\n");
  const Json json = json_of(run_against(server, {"namespaces", "--json"}));
  CHECK(json["namespaces"][0]["fingerprint"] == "22222222222222222222222222222222");
  CHECK(json["namespaces"][0]["tensor_parallel"] == 0);

  const Ran set = run_against(server, {"namespaces", "set-quota", "chat-8b", "64GiB"});
  CHECK(set.exit_code == 0);
  CHECK(set.out == "Namespace  chat-8b\nQuota      64GiB\n");
  CHECK(server.admin.seen.back() == "SetNamespaceQuota name: \"chat-8b\" quota_bytes: 68719476736");
  CHECK(json_of(run_against(server, {"namespaces", "set-quota", "chat-8b", "0", "--json"})) ==
        Json{{"namespace", "chat-8b"}, {"quota_bytes", nullptr}});
}

TEST_CASE("objects sends its filters and shows one row per replica", "[ctl][objects]") {
  FakeServer server;
  server.admin.replicas = {replica(17)};
  server.admin.replicas[0].set_reason("a, \"quoted\"\nreason");
  const Ran table = run_against(server, {"objects", "--namespace", "chat-8b", "--pool", "e3-2",
                                         "--state", "ready", "--digest-prefix", "5A"});
  CHECK(table.exit_code == 0);
  CHECK(
      table.out ==
      "REPLICA  NAMESPACE  DIGEST                            SHARD  PART  POOL  POOL-NAME  STATE  "
      "READABLE  SIZE  LEASES  REASON\n"
      "e3-17    chat-8b    5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a      0     0  e3-2  cpu        ready  "
      "yes       4KiB       0  a, \"quoted\"\\nreason\n");
  CHECK(server.admin.seen.back() ==
        "ListObjects limit: 100 namespace_name: \"chat-8b\" pool: 3298534883330 state: "
        "REPLICA_STATE_READY digest_prefix: \"Z\"");
  CHECK(run_against(server, {"objects", "--csv"}).out ==
        "replica,namespace,namespace_id,digest,shard,part,pool,pool_name,state,readable,size_bytes,"
        "offset_bytes,leases,reason\n"
        "e3-17,chat-8b,,5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a,0,0,e3-2,cpu,ready,true,4096,0,0,"
        "\"a, \"\"quoted\"\"\nreason\"\n");
}

TEST_CASE("a list fetches every page up to its limit and says when there is more",
          "[ctl][objects]") {
  FakeServer server;
  for (uint64_t i = 1; i <= 250; ++i) server.admin.replicas.push_back(replica(i));
  server.admin.page_rows_max = 40;
  const auto rows_of = [&](std::vector<std::string> arguments) {
    const Json json = json_of(run_against(server, std::move(arguments)));
    return std::pair<size_t, bool>{json["objects"].size(), json["more"]};
  };
  CHECK(rows_of({"objects", "--json"}) == std::pair<size_t, bool>{100, true});
  CHECK(rows_of({"objects", "--json", "--limit", "0"}) == std::pair<size_t, bool>{250, false});
  CHECK(rows_of({"objects", "--json", "--limit", "250"}) == std::pair<size_t, bool>{250, false});
  CHECK(rows_of({"objects", "--json", "--limit", "1"}) == std::pair<size_t, bool>{1, true});
  CHECK(run_against(server, {"objects"}).err ==
        "berthctl objects: note: there are more than these 100 rows; raise --limit (0: all)\n");
}

TEST_CASE("a list that does not advance ends in an error instead of never", "[ctl][objects]") {
  FakeServer server;
  server.admin.replicas = {replica(1), replica(2)};
  server.admin.page_rows_max = 0;
  const Ran ran = run_against(server, {"objects"});
  CHECK(ran.exit_code == 1);
  CHECK(ran.err.find("does not advance") != std::string::npos);
}

TEST_CASE("objects inspect shows an object's replicas and leases together", "[ctl][objects]") {
  FakeServer server;
  server.admin.replicas = {replica(17), replica(40)};
  v1::LeaseRow lease;
  lease.set_lease(id3(50));
  lease.set_engine_id("vllm-0");
  server.admin.leases = {lease};
  const Json json = json_of(run_against(server, {"objects", "inspect", "--json", "--namespace",
                                                 "chat-8b", "--digest", std::string(32, 'a')}));
  CHECK(json["replicas"].size() == 2);
  CHECK(json["leases"][0]["engine"] == "vllm-0");
  CHECK(json["reservations"].empty());
  run_against(server, {"objects", "inspect", "e3-17"});
  CHECK(server.admin.seen.back() == "InspectObject replica: " + std::to_string(id3(17)));
}

TEST_CASE("leases and reservations show who is overdue", "[ctl][leases]") {
  FakeServer server;
  v1::LeaseRow lease;
  lease.set_lease(id3(50));
  lease.set_session(id3(4));
  lease.set_engine_id("vllm-0");
  lease.set_operation(12);
  lease.set_replicas(3);
  lease.set_age_ms(90'000);
  lease.set_expires_in_ms(-30'000);
  lease.set_revoking(true);
  server.admin.leases = {lease};
  CHECK(run_against(server, {"leases", "--session", "e3-4"}).out ==
        "LEASE  SESSION  ENGINE  OPERATION  REPLICAS  AGE  EXPIRES-IN  REVOKING\n"
        "e3-50  e3-4     vllm-0         12         3  90s        -30s  yes\n");
  CHECK(server.admin.seen.back() == "ListLeases limit: 10000 session: " + std::to_string(id3(4)));

  v1::ReservationRow reservation;
  reservation.set_first_replica(id3(60));
  reservation.set_session(id3(4));
  reservation.set_engine_id("vllm-0");
  reservation.set_open_items(2);
  reservation.set_open_bytes(8192);
  reservation.set_due_in_ms(-1'500);
  reservation.set_quarantined(true);
  server.admin.reservations = {reservation};
  CHECK(run_against(server, {"reservations", "--csv"}).out ==
        "first_replica,session,engine,operation,open_items,open_bytes,due_in_ms,quarantined\n"
        "e3-60,e3-4,vllm-0,0,2,8192,-1500,true\n");
}

TEST_CASE("jobs shows how far long work is", "[ctl][jobs]") {
  FakeServer server;
  CHECK(run_against(server, {"jobs"}).out == "No jobs: the server has no long work in hand.\n");
  v1::JobRow job;
  job.set_job(id3(70));
  job.set_kind("fence");
  job.set_session(id3(4));
  job.set_done(10);
  job.set_left(90);
  server.admin.jobs = {job};
  CHECK(run_against(server, {"jobs"}).out ==
        "JOB    KIND   POOL  SESSION  NAMESPACE  DONE  LEFT\n"
        "e3-70  fence  -     e3-4     -            10    90\n");
}

TEST_CASE("colour is used where the console has it", "[ctl][pools]") {
  FakeServer server;
  fill_usage(server.admin);
  CHECK(
      run_against(server, {"pools"}, {.terminal = true, .colour = true}).out.find("\x1b[32mlive") !=
      std::string::npos);
  CHECK(run_against(server, {"pools"}, {.terminal = true}).out.find('\x1b') == std::string::npos);
  CHECK(run_against(server, {"pools", "--json"}, {.terminal = true, .colour = true})
            .out.find('\x1b') == std::string::npos);
}

}  // namespace berth::ctl
