#include <catch2/catch.hpp>

#include "common/rpc_status.h"
#include "tests/unit/ctl/fake_admin.h"

namespace berth::ctl {

TEST_CASE("check exits with 1 when an invariant is broken", "[ctl][check]") {
  FakeServer server;
  server.admin.check.set_replicas_checked(12);
  const Ran clean = run_against(server, {"check"});
  CHECK(clean.exit_code == 0);
  CHECK(clean.out.find("Every invariant holds  yes\n") == 0);

  server.admin.check.set_broken("pool e3-2: allocated is 8192 and its parts sum to 4096");
  const Ran broken = run_against(server, {"check", "--json"});
  CHECK(broken.exit_code == 1);
  CHECK(broken.out.find("\"ok\": false") != std::string::npos);
  CHECK(broken.out.find("its parts sum to 4096") != std::string::npos);
  CHECK(broken.err.find("report it") != std::string::npos);
}

TEST_CASE("fence names a session or a node, and always a reason", "[ctl][fence]") {
  FakeServer server;
  server.admin.fence.add_sessions(id3(4));
  const Ran one =
      run_against(server, {"fence", "e3-4", "--reason", "host lost", "--confirm-unmapped"});
  CHECK(one.exit_code == 0);
  CHECK(one.out == "FENCED\ne3-4\n");
  CHECK(server.admin.seen.back() == "Fence session: " + std::to_string(id3(4)) +
                                        " reason: \"host lost\" confirm_unmapped: true");
  run_against(server, {"fence", "--node", "gpu-1", "--reason", "gone"});
  CHECK(server.admin.seen.back() == "Fence node: \"gpu-1\" reason: \"gone\"");

  const size_t calls = server.admin.seen.size();
  const std::vector<std::string> senseless[] = {
      {"fence", "--reason", "x"},
      {"fence", "e3-4", "--node", "gpu-1", "--reason", "x"},
      {"fence", "e3-4"},
      {"fence", "e3-4", "--reason", ""},
      {"fence", "w0", "--reason", "x"},
  };
  for (const auto& arguments : senseless) {
    const Ran ran = run_against(server, arguments);
    CAPTURE(ran.err);
    CHECK(ran.exit_code == 2);
    CHECK(ran.err.find("berthctl fence: ") == 0);
  }
  CHECK(server.admin.seen.size() == calls);
}

TEST_CASE("a refused fence of DOMAIN memory names the option that confirms it", "[ctl][fence]") {
  FakeServer server;
  server.admin.refusal =
      status_from_error({Reason::kStillMapped, "session e3-4 owns pool e3-2 of domain rack-1"});
  const Ran ran = run_against(server, {"fence", "e3-4", "--reason", "x"});
  CHECK(ran.exit_code == 1);
  CHECK(ran.err ==
        "berthctl fence: refused: session e3-4 owns pool e3-2 of domain rack-1 (still_mapped)\n"
        "  Make sure that no other host maps this memory any more, then repeat with "
        "--confirm-unmapped.\n");
}

TEST_CASE("evict tells per replica whether it was retired", "[ctl][evict]") {
  FakeServer server;
  server.admin.evictable = {id3(1), id3(2)};
  CHECK(run_against(server, {"evict", "e3-1", "e3-2"}).exit_code == 0);
  const Ran ran = run_against(server, {"evict", "e3-1", "e3-7"});
  CHECK(ran.exit_code == 1);
  CHECK(ran.out ==
        "REPLICA  RETIRED  RESULT\ne3-1     yes      retired\ne3-7     no       not_ready\n");
  CHECK(ran.err == "berthctl evict: note: 1 of 2 replicas were not READY or are not known\n");
}

TEST_CASE("evict sends any number of replicas in bounded requests", "[ctl][evict]") {
  FakeServer server;
  std::vector<std::string> arguments = {"evict"};
  for (uint64_t i = 1; i <= 600; ++i) {
    arguments.push_back("e3-" + std::to_string(i));
    server.admin.evictable.push_back(id3(i));
  }
  CHECK(run_against(server, arguments).exit_code == 0);
  CHECK(server.admin.seen.size() == 3);
}

TEST_CASE("a refusal is shown with its reason and advice, and scripts see why", "[ctl][exit]") {
  FakeServer server;
  const struct {
    Error error;
    int exit_code;
    std::string message;
    std::string advice;
  } cases[] = {
      {{Reason::kUnknownReplica, "no replica e3-9"},
       1,
       "berthctl objects inspect: refused: no replica e3-9 (unknown_replica)\n",
       "Treat it as a miss."},
      {{Reason::kStoreDegraded, "disk full"},
       4,
       "berthctl objects inspect: not ready: disk full (store_degraded)\n",
       "The state directory cannot be written"},
      {{Reason::kQueueFull, "4096 commands wait"},
       1,
       "berthctl objects inspect: refused: 4096 commands wait (queue_full)\n",
       "back off and retry"},
      {{Reason::kInternal, "evil \x1b[2J"},
       1,
       "berthctl objects inspect: refused: evil \\x1b[2J (internal)\n",
       "A bug in Berth"},
  };
  for (const auto& c : cases) {
    server.admin.refusal = status_from_error(c.error);
    const Ran ran = run_against(server, {"objects", "inspect", "e3-9"});
    CHECK(ran.exit_code == c.exit_code);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(c.message) == 0);
    CHECK(ran.err.find(c.advice) != std::string::npos);
  }
}

TEST_CASE("a server of another kind is told apart from one that refuses", "[ctl][exit]") {
  FakeServer server;
  server.admin.refusal = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "");
  const Ran ran = run_against(server, {"jobs"});
  CHECK(ran.exit_code == 1);
  CHECK(ran.err.find("does not know this request") != std::string::npos);
}

TEST_CASE("a command line that makes no sense exits with 2 and sends nothing", "[ctl][exit]") {
  FakeServer server;
  const struct {
    std::vector<std::string> arguments;
    std::string says;
  } cases[] = {
      {{}, "no command was given; there are status, usage"},
      {{"useage"}, "\"useage\" is not a command; there are status, usage"},
      {{"usage", "extra"}, "extra"},
      {{"usage", "--bogus"}, "--bogus"},
      {{"usage", "--json", "--csv"}, "--json and --csv exclude each other"},
      {{"usage", "-w", "0"}, "accepted: seconds from 0.1 to 86400"},
      {{"usage", "-w", "nan"}, "accepted: seconds from 0.1 to 86400"},
      {{"usage", "--timeout", "5"}, "--timeout = \"5\""},
      {{"usage", "--timeout", "0s"}, "at least 1ms"},
      {{"usage", "--server", "http://x"}, "--server = \"http://x\""},
      {{"pools", "--limit", "-1"}, "--limit = \"-1\""},
      {{"pools", "--limit", "1e3"}, "accepted: a whole number"},
      {{"objects", "--state", "live"}, "{reserved,ready,retiring,quarantined}"},
      {{"objects", "--pool", "cpu"}, "--pool = \"cpu\""},
      {{"objects", "--digest-prefix", "xyz"}, "--digest-prefix"},
      {{"objects", "--pool", "e3-1", "inspect", "e3-2"}, "--pool is not an option of `inspect`"},
      {{"objects", "inspect"}, "either REPLICA, or --namespace NAME with --digest HEX"},
      {{"objects", "inspect", "e3-1", "--namespace", "a"}, "either REPLICA"},
      {{"leases", "--session", "none"}, "--session"},
      {{"namespaces", "set-quota", "chat-8b"}, "SIZE"},
      {{"namespaces", "set-quota", "chat-8b", "8 GB"}, "SIZE = \"8 GB\""},
      {{"fence", "-w", "1"}, "-w"},
      {{"evict", "17"}, "REPLICA = \"17\""},
      {{"events", "--epoch", "3"}, "give both"},
      {{"events", "--from", "1", "--epoch", "99999999999"}, "--epoch = 99999999999"},
      {{"events", "--from", "x"}, "--from = \"x\""},
  };
  for (const auto& c : cases) {
    const Ran ran = run_berthctl(c.arguments, {.berth_server = server.address()});
    CAPTURE(c.arguments, ran.err);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.find("berthctl") == 0);
    CHECK(ran.err.find(c.says) != std::string::npos);
  }
  CHECK(server.admin.seen.empty());
}

TEST_CASE("the option --server goes before BERTH_SERVER, wherever it stands", "[ctl][exit]") {
  FakeServer server;
  const std::string absent = "unix:/nonexistent/berthd.sock";
  CHECK(run_berthctl({"jobs"}, {.berth_server = server.address()}).exit_code == 0);
  CHECK(run_berthctl({"jobs"}, {.berth_server = absent}).exit_code == 3);
  CHECK(run_berthctl({"jobs", "--server", server.address()}, {.berth_server = absent}).exit_code ==
        0);
  CHECK(run_berthctl({"--server", server.address(), "jobs"}, {.berth_server = absent}).exit_code ==
        0);
}

TEST_CASE("every command has help with an example and the exit codes", "[ctl][help]") {
  const std::vector<std::string> commands[] = {
      {},
      {"status"},
      {"usage"},
      {"pools"},
      {"sessions"},
      {"namespaces"},
      {"namespaces", "set-quota"},
      {"objects"},
      {"objects", "inspect"},
      {"leases"},
      {"reservations"},
      {"jobs"},
      {"events"},
      {"check"},
      {"fence"},
      {"evict"},
  };
  for (std::vector<std::string> arguments : commands) {
    arguments.push_back("--help");
    const Ran ran = run_berthctl(arguments);
    CAPTURE(arguments);
    CHECK(ran.exit_code == 0);
    CHECK(ran.err.empty());
    CHECK(ran.out.find("\n  berthctl ") != std::string::npos);
    CHECK(ran.out.find("Exit codes: 0 ok, 1 refused") != std::string::npos);
    CHECK(ran.out.find("--server") != std::string::npos);
  }
}

}  // namespace berth::ctl
