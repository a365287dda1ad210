#include <algorithm>
#include <catch2/catch.hpp>

#include "common/rpc_status.h"
#include "tests/unit/ctl/fake_admin.h"

namespace berth::ctl {
namespace {

v1::WatchEventsResponse events_of(uint32_t epoch, std::vector<uint64_t> sequences) {
  v1::WatchEventsResponse response;
  response.set_epoch(epoch);
  for (const uint64_t sequence : sequences) {
    v1::Event& event = *response.add_events();
    event.set_sequence(sequence);
    event.set_kind("ready");
    event.set_replica(id3(sequence));
  }
  return response;
}

v1::WatchEventsResponse after_gap(v1::WatchEventsResponse response) {
  response.set_gap(true);
  return response;
}

// The columns that these tests are about.
std::vector<std::string> epoch_sequence_kind(const std::string& csv) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t end = csv.find('\n'); end != std::string::npos; end = csv.find('\n', start)) {
    const std::string line = csv.substr(start, end - start);
    const size_t sequence = line.find(',');
    const size_t time = line.find(',', sequence + 1);
    const size_t kind = line.find(',', time + 1);
    lines.push_back(line.substr(0, time) + "," +
                    line.substr(kind + 1, line.find(',', kind + 1) - kind - 1));
    start = end + 1;
  }
  lines.erase(lines.begin());  // the header
  return lines;
}

const grpc::Status kBroken(grpc::StatusCode::UNAVAILABLE, "Socket closed");

FakeServer& at_epoch_3(FakeServer& server) {
  server.admin.status.mutable_store()->set_epoch(3);
  server.admin.status.set_event_sequence(40);
  return server;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("events shows all that is kept and ends", "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  // The oldest events are gone, as always after a while; whoever asks for all knows that.
  server.admin.watches = {{.answers = {after_gap(events_of(3, {7, 8})), events_of(3, {9})}}};
  SECTION("as CSV") {
    const Ran ran = run_against(server, {"events", "--csv"});
    CHECK(ran.exit_code == 0);
    CHECK(epoch_sequence_kind(ran.out) == Lines{"3,7,ready", "3,8,ready", "3,9,ready"});
    CHECK(server.admin.seen.back() == "WatchEvents from_sequence: 1 epoch: 3 stop_at_end: true");
  }
  SECTION("as JSON, one object per line") {
    const Ran ran = run_against(server, {"events", "--json"});
    CHECK(ran.out.find("{\"epoch\":3,\"sequence\":7,\"unix_ms\":null,\"kind\":\"ready\","
                       "\"session\":null,\"pool\":null,\"replica\":\"e3-7\",") == 0);
    CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 3);
  }
  SECTION("as a table with one header") {
    const Ran ran = run_against(server, {"events"});
    CHECK(ran.out.find("EPOCH  SEQUENCE  TIME") == 0);
    CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 4);
  }
}

TEST_CASE("a number that is no longer kept is answered with a gap", "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  server.admin.watches = {{.answers = {after_gap(events_of(3, {7}))}}};
  const Ran ran = run_against(server, {"events", "--csv", "--from", "2"});
  CHECK(epoch_sequence_kind(ran.out) == Lines{"3,2,gap", "3,7,ready"});
  CHECK(ran.out.find("events from 2 on are no longer kept") != std::string::npos);
}

TEST_CASE("following starts behind the newest event", "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  server.admin.watches = {{.answers = {events_of(3, {41})}}};
  const Ran ran = run_against(server, {"events", "-f", "--csv"});
  CHECK(ran.exit_code == 0);
  CHECK(epoch_sequence_kind(ran.out) == Lines{"3,41,ready"});
  CHECK(server.admin.seen.back() == "WatchEvents from_sequence: 41 epoch: 3");
}

TEST_CASE("a broken stream is resumed by epoch and sequence, without loss or repetition",
          "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  server.admin.watches = {{.answers = {events_of(3, {41, 42})}, .end = kBroken},
                          {.answers = {}, .end = kBroken},
                          {.answers = {events_of(3, {42, 43})}}};
  int waits = 0;
  const Ran ran =
      run_against(server, {"events", "-f", "--csv"}, {.wait = [&] { return ++waits < 3; }});
  CHECK(epoch_sequence_kind(ran.out) == Lines{"3,41,ready", "3,42,ready", "3,43,ready"});
  CHECK(server.admin.seen.back() == "WatchEvents from_sequence: 43 epoch: 3");
  // Each outage is said once, however long it lasts.
  CHECK(ran.err.find("Socket closed; trying again, from epoch 3 sequence 43\n") !=
        std::string::npos);
  CHECK(std::count(ran.err.begin(), ran.err.end(), '\n') == 2);
}

TEST_CASE("a restarted server is a gap, and the new epoch is followed", "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  server.admin.watches = {{.answers = {events_of(3, {41})}, .end = kBroken},
                          {.answers = {after_gap(events_of(4, {1, 2}))}, .end = kBroken},
                          {.answers = {events_of(4, {3})}}};
  int waits = 0;
  const Ran ran =
      run_against(server, {"events", "-f", "--csv"}, {.wait = [&] { return ++waits < 3; }});
  CHECK(epoch_sequence_kind(ran.out) ==
        Lines{"3,41,ready", "4,42,gap", "4,1,ready", "4,2,ready", "4,3,ready"});
  CHECK(ran.out.find("the server restarted: epoch 3 became 4") != std::string::npos);
  CHECK(server.admin.seen.back() == "WatchEvents from_sequence: 3 epoch: 4");
}

TEST_CASE("following outlives the server itself", "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  server.admin.watches = {{.answers = {events_of(3, {41})}, .end = kBroken},
                          {.answers = {events_of(3, {42})}}};
  int waits = 0;
  const auto wait = [&] {
    ++waits;
    if (waits == 1) server.stop();
    if (waits == 2) server.start();
    // The client's own back-off decides which attempt gets through to the new server.
    return !server.admin.watches.empty();
  };
  const Ran ran = run_against(server, {"events", "-f", "--csv"}, {.wait = wait});
  CHECK(epoch_sequence_kind(ran.out) == Lines{"3,41,ready", "3,42,ready"});
}

TEST_CASE("following ends when the server refuses it, and when it was never there",
          "[ctl][events]") {
  FakeServer server;
  at_epoch_3(server);
  server.admin.watches = {
      {.answers = {},
       .end = status_from_error({Reason::kLimitReached, "64 watchers are the most"})}};
  const Ran refused = run_against(server, {"events", "-f"}, {.wait = [] { return true; }});
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("64 watchers are the most (limit_reached)") != std::string::npos);
  server.stop();
  CHECK(run_against(server, {"events", "-f"}, {.wait = [] { return true; }}).exit_code == 3);
}

TEST_CASE("a watched view is appended on a pipe", "[ctl][watch]") {
  FakeServer server;
  int waits = 0;
  const auto twice = [&] { return ++waits < 2; };
  SECTION("as tables with a blank line between") {
    const Ran ran = run_against(server, {"jobs", "-w", "1"}, {.wait = twice});
    CHECK(ran.exit_code == 0);
    const size_t second = ran.out.find("\n\n");
    REQUIRE(second != std::string::npos);
    CHECK(ran.out.find("Z\nNo jobs") == 23);
    CHECK(ran.out.find("Z\nNo jobs", second) == second + 2 + 23);
  }
  SECTION("as CSV with one header") {
    server.admin.jobs.emplace_back().set_kind("fence");
    const Ran ran = run_against(server, {"jobs", "-w", "1", "--csv"}, {.wait = twice});
    CHECK(ran.out.find("time,job,kind,pool,session,namespace_id,done,left\n") == 0);
    CHECK(ran.out.rfind("time,") == 0);
    CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 3);
  }
  SECTION("as JSON, one object per line") {
    const Ran ran = run_against(server, {"jobs", "-w", "1", "--json"}, {.wait = twice});
    CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 2);
    CHECK(ran.out.find("{\"time\":\"") == 0);
  }
}

TEST_CASE("a watched view is redrawn in place on a terminal and stays within it", "[ctl][watch]") {
  FakeServer server;
  for (uint64_t i = 1; i <= 50; ++i) server.admin.jobs.emplace_back().set_job(id3(i));
  int waits = 0;
  const Ran ran = run_against(
      server, {"jobs", "-w", "1"},
      {.terminal = true, .columns = 80, .rows = 10, .wait = [&] { return ++waits < 2; }});
  CHECK(ran.out.find("\x1b[2J\x1b[H") == 0);
  CHECK(ran.out.find("\x1b[2J", 1) == std::string::npos);
  CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 2 * 9);
  CHECK(ran.out.substr(ran.out.size() - 7) == "~\x1b[K\x1b[J");
}

TEST_CASE("a watch waits for a server that went away and ends when it is refused", "[ctl][watch]") {
  FakeServer server;
  int waits = 0;
  const auto wait = [&] {
    ++waits;
    if (waits == 1) server.stop();
    return waits < 3;
  };
  const Ran gone = run_against(server, {"jobs", "-w", "1"}, {.wait = wait});
  CHECK(waits == 3);
  CHECK(gone.exit_code == 3);
  CHECK(gone.out.find("No jobs") != std::string::npos);
  CHECK(gone.err.find("cannot be reached") != std::string::npos);

  server.start();
  server.admin.refusal = status_from_error({Reason::kPermissionDenied, "no"});
  const Ran refused = run_against(server, {"jobs", "-w", "1"}, {.wait = [] { return true; }});
  CHECK(refused.exit_code == 1);
}

}  // namespace berth::ctl
