// Evictions, pins, drains, policies and explanations on the command line: what is sent, what is
// shown, and what a script sees.
#include <catch2/catch.hpp>

#include "common/rpc_status.h"
#include "tests/unit/ctl/fake_admin.h"

namespace berth::ctl {
namespace {

using Catch::Contains;

const std::string kHex = "61616161616161616161616161616161";  // sixteen times "a"
const std::string kOtherHex = "62626262626262626262626262626262";

v1::NamespaceRow space(const std::string& name, uint32_t digest_bytes = 16, uint32_t shards = 1) {
  v1::NamespaceRow row;
  row.set_namespace_id(1);
  row.mutable_spec()->set_name(name);
  row.mutable_spec()->set_digest_bytes(digest_bytes);
  row.mutable_spec()->set_shards(shards);
  row.mutable_spec()->set_parts(1);
  return row;
}

v1::PoolRow pool(uint64_t id, const std::string& worker, const std::string& name,
                 uint64_t ready = 0) {
  v1::PoolRow row;
  row.set_pool(id3(id));
  row.mutable_spec()->set_name(name);
  row.set_owner(id3(100 + id));
  row.set_owner_name(worker);
  row.set_state(v1::POOL_STATE_DRAINING);
  row.set_draining(true);
  row.mutable_usage()->set_budget_bytes(1000);
  row.mutable_usage()->set_capacity_bytes(1000);
  row.mutable_usage()->set_ready_replicas(ready);
  return row;
}

v1::SessionRow session(uint64_t id, const std::string& name, v1::Role role,
                       const std::string& worker = "") {
  v1::SessionRow row;
  row.set_session(id3(id));
  row.set_name(name);
  row.set_role(role);
  row.set_node("node-a");
  row.set_worker_name(worker);
  return row;
}

bool was_sent(const FakeServer& server, const std::string& text) {
  for (const std::string& seen : server.admin.seen)
    if (seen.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("chunks are evicted by whole digests, with a word for each", "[ctl][evict]") {
  FakeServer server;
  server.admin.namespaces = {space("chat")};
  server.admin.codes = std::string("\1\2", 2);
  const Ran ran =
      run_against(server, {"evict", "--namespace", "chat", "--digest", kHex, kOtherHex});
  CHECK(ran.exit_code == 1);
  CHECK(ran.out == "DIGEST                            RESULT\n" + kHex + "  retired\n" + kOtherHex +
                       "  pinned\n");
  CHECK_THAT(ran.err, Contains("1 of 2 chunks have a pin that keeps them"));
  CHECK(was_sent(server,
                 "Evict namespace_name: \"chat\" digests: \"aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb\""));
}

TEST_CASE("a digest of another width is refused before anything is sent", "[ctl][evict][pin]") {
  FakeServer server;
  server.admin.namespaces = {space("chat", 32)};
  const std::vector<std::string> commands[] = {
      {"evict", "--namespace", "chat", "--digest", kHex, kOtherHex},
      {"pin", "chat", kHex, kOtherHex, "--soft"},
      {"unpin", "chat", "61"},
      {"explain", "chat", kHex, "--for", "w0"},
  };
  for (const auto& command : commands) {
    const Ran ran = run_against(server, command);
    CAPTURE(command, ran.err);
    CHECK(ran.exit_code == 2);
    CHECK_THAT(ran.err, Contains("accepted: a whole digest of namespace chat, 64 characters"));
    CHECK_THAT(ran.err, Contains("--digest-prefix"));
  }
  for (const std::string& seen : server.admin.seen) CHECK(seen.find("ListNamespaces") == 0);
}

TEST_CASE("a namespace that is not known is a refusal, not a usage error", "[ctl][pin]") {
  FakeServer server;
  const Ran ran = run_against(server, {"pin", "chat", kHex, "--hard"});
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, Contains("no namespace \"chat\" (unknown_namespace)"));
}

TEST_CASE("any number of chunks is sent in requests that the server takes", "[ctl][evict]") {
  FakeServer server;
  server.admin.namespaces = {space("chat", 16, 1024)};  // 64 chunks are 65536 copies
  std::vector<std::string> arguments = {"evict", "--namespace", "chat", "--digest"};
  for (int i = 0; i < 130; ++i) arguments.push_back(kHex);
  server.admin.codes = std::string(64, '\1');
  CHECK(run_against(server, arguments).exit_code == 0);
  CHECK(std::count_if(server.admin.seen.begin(), server.admin.seen.end(),
                      [](const auto& seen) { return seen.find("Evict ") == 0; }) == 3);
}

TEST_CASE("a whole namespace is evicted only when it is said twice", "[ctl][evict]") {
  FakeServer server;
  server.admin.job = id3(9);
  const Ran unsure = run_against(server, {"evict", "--namespace", "chat", "--all"});
  CHECK(unsure.exit_code == 2);
  CHECK_THAT(unsure.err, Contains("pinned copies included") && Contains("--yes"));
  CHECK(server.admin.seen.empty());
  const Ran ran = run_against(server, {"evict", "--namespace", "chat", "--all", "--yes"});
  CHECK(ran.exit_code == 0);
  CHECK(ran.out == "Job  e3-9\n");
  CHECK_THAT(ran.err, Contains("berthctl jobs"));
  CHECK(was_sent(server, "EvictNamespace name: \"chat\""));
}

TEST_CASE("a pool is trimmed to a size or to a share of its budget", "[ctl][evict]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu")};
  server.admin.job = id3(9);
  const std::string sent = "TrimPool pool: " + std::to_string(id3(2));
  CHECK(run_against(server, {"evict", "--pool", "w0/cpu", "--to", "512"}).exit_code == 0);
  CHECK(was_sent(server, sent + " target_bytes: 512"));
  CHECK(run_against(server, {"evict", "--pool", "e3-2", "--to", "37.5%"}).exit_code == 0);
  CHECK(was_sent(server, sent + " target_bytes: 375"));
  const Ran ran = run_against(server, {"evict", "--pool", "cpu", "--to", "0"});
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, Contains("--pool = \"cpu\": no such pool") && Contains("WORKER/POOL"));
}

TEST_CASE("pins are set with a kind and taken off, and what failed is said", "[ctl][pin]") {
  FakeServer server;
  server.admin.namespaces = {space("chat")};
  server.admin.codes = "\1";
  CHECK(run_against(server, {"pin", "chat", kHex, "--soft", "--ttl", "2h"}).exit_code == 0);
  CHECK(was_sent(server, "kind: PIN_KIND_SOFT ttl_ms: 7200000"));
  CHECK(run_against(server, {"pin", "chat", kHex, "--hard"}).exit_code == 0);
  CHECK(was_sent(server, "kind: PIN_KIND_HARD"));
  server.admin.codes = std::string("\2\0", 2);
  const Ran full = run_against(server, {"pin", "chat", kHex, kOtherHex, "--hard", "--csv"});
  CHECK(full.exit_code == 1);
  CHECK(full.out == "digest,result\n" + kHex + ",no_room\n" + kOtherHex + ",not_present\n");
  CHECK_THAT(full.err, Contains("low watermark") && Contains("no READY copy"));

  const Ran unpinned = run_against(server, {"unpin", "chat", kHex, "--json"});
  CHECK(unpinned.exit_code == 0);
  CHECK_THAT(unpinned.out, Contains("\"unpinned\"") && Contains(kHex));
}

TEST_CASE("pins are listed with the time that they have left", "[ctl][pin]") {
  FakeServer server;
  CHECK(run_against(server, {"pins"}).out == "No pins: every copy may be evicted.\n");
  v1::PinRow row;
  row.set_replica(id3(5));
  row.set_namespace_name("chat");
  row.set_digest(std::string(16, 'a'));
  row.set_pool(id3(2));
  row.set_size_bytes(4096);
  row.set_kind(v1::PIN_KIND_SOFT);
  row.set_expires_in_ms(90'000);
  server.admin.pins.push_back(row);
  row.set_replica(id3(6));
  row.set_kind(v1::PIN_KIND_HARD);
  row.set_expires_in_ms(-1);
  server.admin.pins.push_back(row);
  const Ran table = run_against(server, {"pins"});
  CHECK_THAT(table.out, Contains("4KiB  soft         90s") && Contains("4KiB  hard           -"));
  CHECK_THAT(run_against(server, {"pins", "--csv"}).out,
             Contains("soft,90000\n") && Contains("hard,\n"));
}

TEST_CASE("a drain names a pool by id or WORKER/POOL, or a worker by name or session",
          "[ctl][drain]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu", 3), pool(3, "w1", "cpu")};
  server.admin.sessions = {session(102, "w0", v1::ROLE_WORKER),
                           session(7, "engine-0", v1::ROLE_CLIENT, "w0")};
  server.admin.drained.add_pools(id3(2));
  const Ran ran = run_against(server, {"drain", "w0/cpu"});
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Contains("e3-2  cpu   w0      draining     3      3") && !Contains("e3-3"));
  CHECK_THAT(ran.err, Contains("3 replicas left: 3 ready; --wait waits for them"));
  const auto sent = [&](const std::string& target) {
    run_against(server, {"drain", target});
    return server.admin.seen;
  };
  const std::string by_pool = "Drain pool: " + std::to_string(id3(2));
  const std::string by_worker = "Drain worker: " + std::to_string(id3(102));
  CHECK(was_sent(server, by_pool));
  server.admin.seen.clear();
  sent("e3-2");
  CHECK(was_sent(server, by_pool));
  server.admin.seen.clear();
  sent("w0");
  CHECK(was_sent(server, by_worker));
  server.admin.seen.clear();
  sent("e3-102");
  CHECK(was_sent(server, by_worker));
  for (const std::string wrong : {"cpu", "engine-0", "e3-7", "w9", "w0/ssd"}) {
    const Ran refused = run_against(server, {"drain", wrong});
    CAPTURE(wrong);
    CHECK(refused.exit_code == 1);
    CHECK_THAT(refused.err, Contains("no such pool or worker"));
  }
}

TEST_CASE("a drain that is waited for shows a line for each change and ends with 0",
          "[ctl][drain]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu", 4)};
  server.admin.drained.add_pools(id3(2));
  int looks = 0;
  Place place;
  place.wait = [&] {
    auto& usage = *server.admin.pools[0].mutable_usage();
    const uint64_t left = usage.ready_replicas() + usage.retiring_replicas();
    if (++looks % 2 == 0) usage.set_retiring_replicas(left - 1);
    usage.set_ready_replicas(0);
    if (looks % 2 == 1) usage.set_retiring_replicas(left);
    return looks < 100;
  };
  const Ran ran = run_against(server, {"drain", "w0/cpu", "--wait", "--json"}, place);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.err, Contains("Ctrl-C leaves the drain going"));
  CHECK_THAT(ran.err, Contains("4 replicas left: 4 ready\n4 replicas left: 4 retiring\n3 replicas "
                               "left: 3 retiring\n2 replicas left: 2 retiring\n1 replica left: 1 "
                               "retiring\n0 replicas left\n"));
  CHECK_THAT(ran.out, Contains("\"left\": 0"));
  CHECK(ran.err.find('\r') == std::string::npos);
}

TEST_CASE("on a terminal a drain is one bar that is redrawn and cut to the width", "[ctl][drain]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu", 4)};
  server.admin.drained.add_pools(id3(2));
  Place place{.terminal = true, .columns = 60, .rows = 20};
  place.wait = [&] {
    auto& usage = *server.admin.pools[0].mutable_usage();
    usage.set_ready_replicas(usage.ready_replicas() - 1);
    return true;
  };
  const Ran ran = run_against(server, {"drain", "e3-2", "--wait"}, place);
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.err,
             Contains("\r[..............................] 0%  4 replicas left: 4 rea\x1b[K") &&
                 Contains("\r[###############...............] 50%  2 replicas left: 2 re\x1b[K") &&
                 Contains("\r[##############################] 100%  0 replicas left\x1b[K\n"));
}

TEST_CASE("a drain that is left goes on, and the same command shows it again", "[ctl][drain]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu", 4)};
  server.admin.drained.add_pools(id3(2));
  const Ran left = run_against(server, {"drain", "w0/cpu", "--wait"});
  CHECK(left.exit_code == 4);
  CHECK_THAT(left.err, Contains("not empty yet; the drain goes on"));
  CHECK_FALSE(was_sent(server, "Undrain"));
  server.admin.pools[0].mutable_usage()->set_ready_replicas(0);
  CHECK(run_against(server, {"drain", "w0/cpu", "--wait"}).exit_code == 0);
}

TEST_CASE("a drain waits through a restart of the server, and ends when somebody undrains",
          "[ctl][drain]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu", 4)};
  server.admin.drained.add_pools(id3(2));
  int looks = 0;
  Place place;
  place.wait = [&] {
    ++looks;
    if (looks == 1) server.stop();
    if (looks == 3) server.start();
    // Its worker has not re-attached yet.
    if (looks == 3) server.admin.pools[0].set_state(v1::POOL_STATE_UNVERIFIED);
    if (looks == 4) server.admin.pools[0].set_draining(false);
    return true;  // a channel that failed is tried again after its back-off
  };
  const Ran ran = run_against(server, {"drain", "w0/cpu", "--wait"}, place);
  CHECK(ran.exit_code == 1);
  CHECK_THAT(ran.err, Contains("cannot be reached") && Contains("trying again") &&
                          Contains("taken back into use meanwhile"));
}

TEST_CASE("undrain shows the pools that are back", "[ctl][drain]") {
  FakeServer server;
  server.admin.pools = {pool(2, "w0", "cpu")};
  server.admin.pools[0].set_state(v1::POOL_STATE_LIVE);
  server.admin.pools[0].set_draining(false);
  server.admin.drained.add_pools(id3(2));
  const Ran ran = run_against(server, {"undrain", "w0/cpu"});
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Contains("live"));
  CHECK(was_sent(server, "Undrain pool: " + std::to_string(id3(2))));
}

TEST_CASE("the policy is shown with what it did, and set piece by piece", "[ctl][policy]") {
  FakeServer server;
  v1::GetPolicyResponse& policy = server.admin.policy;
  policy.mutable_policy()->set_policy("adaptive");
  policy.mutable_policy()->set_high_permille(925);
  policy.mutable_policy()->set_low_permille(800);
  policy.set_slice_us_max(120);
  v1::PolicyRow& row = *policy.add_rows();
  row.set_pool(id3(2));
  row.set_pool_name("cpu");
  row.set_policy("adaptive");
  row.set_held_replicas(17);
  row.set_state("k = 400");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"policy"}, std::vector<std::string>{"policy", "get"}}) {
    const Ran ran = run_against(server, command);
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, Contains("92.5%") && Contains("80%") && Contains("k = 400"));
  }
  CHECK_THAT(run_against(server, {"policy", "get", "--json"}).out,
             Contains("\"high_permille\": 925") && Contains("\"slice_us_max\": 120") &&
                 Contains("\"held_replicas\": 17"));

  CHECK(run_against(server, {"policy", "set", "--high", "92.5"}).exit_code == 0);
  CHECK(server.admin.seen.back() == "SetPolicy policy { high_permille: 925 }");
  CHECK(run_against(server, {"policy", "set", "--policy", "lru", "--low", "70%"}).exit_code == 0);
  CHECK(server.admin.seen.back() == "SetPolicy policy { policy: \"lru\" low_permille: 700 }");
  CHECK(run_against(server, {"policy", "set", "--reset"}).exit_code == 0);
  CHECK(server.admin.seen.back() == "SetPolicy reset: true");
}

TEST_CASE("explain asks for a requester by id or by name and shows every copy", "[ctl][explain]") {
  FakeServer server;
  server.admin.namespaces = {space("chat")};
  server.admin.sessions = {
      session(102, "w0", v1::ROLE_WORKER), session(7, "engine-0", v1::ROLE_CLIENT, "w0"),
      session(8, "twin", v1::ROLE_CLIENT, "w0"), session(9, "twin", v1::ROLE_CLIENT, "w1")};
  v1::ExplainResponse& answer = server.admin.explanation;
  answer.set_miss_reason(v1::MISS_REASON_RETIRING);
  v1::ExplainedReplica& copy = *answer.add_replicas();
  copy.mutable_replica()->set_replica(id3(5));
  copy.mutable_replica()->set_state(v1::REPLICA_STATE_READY);
  copy.set_obstacle(v1::MISS_REASON_RETIRING);
  copy.set_advice("An operator drains its pool.");
  v1::RetiredCopy& gone = *answer.add_retired();
  gone.set_replica(id3(4));
  gone.set_reason("made_room");
  gone.set_age_ms(3000);
  const Ran ran = run_against(server, {"explain", "chat", kHex, "--for", "engine-0"});
  CHECK(ran.exit_code == 0);
  CHECK_THAT(ran.out, Contains("no") && Contains("retiring") &&
                          Contains("An operator drains its pool.") && Contains("made_room"));
  CHECK(server.admin.seen.back() ==
        "Explain namespace_name: \"chat\" digest: \"aaaaaaaaaaaaaaaa\" "
        "session: " +
            std::to_string(id3(7)));
  CHECK_THAT(run_against(server, {"explain", "chat", kHex, "--for", "e3-102", "--json"}).out,
             Contains("\"hit\": false") && Contains("\"miss_reason\": \"retiring\"") &&
                 Contains("\"requester\": \"w0\"") && Contains("\"age_ms\": 3000"));

  const Ran twice = run_against(server, {"explain", "chat", kHex, "--for", "twin"});
  CHECK(twice.exit_code == 1);
  CHECK_THAT(twice.err, Contains("e3-8 at \"w0\", e3-9 at \"w1\""));
  const Ran nobody = run_against(server, {"explain", "chat", kHex, "--for", "e3-55"});
  CHECK(nobody.exit_code == 1);
  CHECK_THAT(nobody.err, Contains("--for = \"e3-55\": no such session"));
}

TEST_CASE("an action that contradicts itself exits with 2 and sends nothing", "[ctl][exit]") {
  FakeServer server;
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{"evict"}, "say what to evict"},
      {{"evict", "e3-1", "--pool", "e3-2"}, "say what to evict"},
      {{"evict", "--replica", "17"}, "REPLICA = \"17\""},
      {{"evict", "--namespace", "chat"}, "one of --digest HEX and --all"},
      {{"evict", "--namespace", "chat", "--all", "--digest", kHex},
       "one of --digest HEX and --all"},
      {{"evict", "--digest", kHex}, "say what to evict"},
      {{"evict", "e3-1", "--all"}, "need --namespace"},
      {{"evict", "e3-1", "--to", "5"}, "--to needs --pool"},
      {{"evict", "--pool", "e3-2"}, "--pool needs --to"},
      {{"evict", "--pool", "e3-2", "--to", "101%"}, "--to = \"101%\""},
      {{"evict", "--pool", "e3-2", "--to", "4 GB"}, "--to = \"4 GB\""},
      {{"pin", "chat", kHex}, "either --soft or --hard"},
      {{"pin", "chat", kHex, "--soft", "--hard"}, "either --soft or --hard"},
      {{"pin", "chat", kHex, "--hard", "--ttl", "1h"}, "--ttl is for soft pins"},
      {{"pin", "chat", kHex, "--soft", "--ttl", "0s"}, "at least 1ms"},
      {{"pin", "chat", "--soft"}, "DIGEST"},
      {{"unpin", "chat"}, "DIGEST"},
      {{"drain"}, "TARGET"},
      {{"drain", "w0", "-w", "1"}, "-w"},
      {{"undrain"}, "TARGET"},
      {{"policy", "set"}, "say what to set"},
      {{"policy", "set", "--reset", "--high", "90"}, "say what to set"},
      {{"policy", "set", "--policy", "mru"}, "{adaptive,lru,s3fifo,lfu_da}"},
      {{"policy", "set", "--high", "0"}, "more than 0 percent"},
      {{"policy", "set", "--high", "100.1"}, "--high = \"100.1\""},
      {{"policy", "set", "--low", "9.55"}, "at most one decimal"},
      {{"policy", "set", "--low", "-1"}, "--low"},
      {{"explain", "chat", kHex}, "--for SESSION is required"},
      {{"explain", "chat"}, "DIGEST"},
  };
  for (const auto& c : cases) {
    const Ran ran = run_berthctl(c.arguments, {.berth_server = server.address()});
    CAPTURE(c.arguments, ran.err);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(c.says) != std::string::npos);
  }
  CHECK(server.admin.seen.empty());
}

TEST_CASE("the new commands have help with an example and the exit codes", "[ctl][help]") {
  const std::vector<std::string> commands[] = {
      {"evict"},   {"pin"},    {"unpin"},         {"pins"},          {"drain"},
      {"undrain"}, {"policy"}, {"policy", "get"}, {"policy", "set"}, {"explain"}};
  for (std::vector<std::string> arguments : commands) {
    arguments.push_back("--help");
    const Ran ran = run_berthctl(arguments);
    CAPTURE(arguments);
    CHECK(ran.exit_code == 0);
    CHECK_THAT(ran.out, Contains("Example") && Contains("Exit codes: 0 ok"));
  }
}

}  // namespace berth::ctl
