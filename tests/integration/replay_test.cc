// berth-replay as its users run it: every byte verified, the one right number of hits, also while
// the server dies under it. Uses the recorded traces where the checkout has them beside it, and
// generated ones otherwise.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

using Json = nlohmann::json;

constexpr Duration kReplayWithin = seconds(240);

std::string recorded_trace(const std::string& name) {
  return std::string(BERTH_SOURCE_DIR) + "/../shared/traces/" + name;
}

// What unbounded memory hits: each request up to its first block that no earlier one had.
struct Expected {
  uint64_t blocks = 0;
  uint64_t hits = 0;
};
Expected expect(const std::string& trace, size_t requests) {
  Expected expected;
  std::unordered_set<uint64_t> known;
  std::ifstream lines(trace);
  std::string line;
  for (size_t i = 0; i < requests && std::getline(lines, line); ++i) {
    const auto ids = Json::parse(line).at("hash_ids").get<std::vector<uint64_t>>();
    expected.blocks += ids.size();
    for (const uint64_t id : ids) {
      if (known.count(id) == 0) break;
      ++expected.hits;
    }
    known.insert(ids.begin(), ids.end());
  }
  return expected;
}

// Runs it to its end and reads the report, the last line that is JSON.
Json replay(const std::vector<std::string>& options, const std::string& directory) {
  std::vector<std::string> arguments = {program("berth-replay")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Finished run = run_to_end(arguments, directory + "/replay.log", kReplayWithin);
  INFO(run.output);
  REQUIRE(run.code == 0);
  const size_t start = run.output.find('{');
  REQUIRE(start != std::string::npos);
  return Json::parse(run.output.substr(start, run.output.rfind('}') - start + 1));
}

void check_no_errors(const Json& report) {
  CHECK(report.at("verify_errors") == 0);
  CHECK(report.at("load_errors") == 0);
}

void check_recorded(const std::string& name, uint64_t hits, uint64_t blocks) {
  if (!std::filesystem::exists(recorded_trace(name))) {
    WARN("no recorded traces beside this checkout: not replayed");
    return;
  }
  TemporaryDirectory directory;
  const Json report = replay({"--local", "--engines", "1", "--trace", recorded_trace(name),
                              "--block-bytes", "4096", "--cpu-pool", "2GiB", "--json"},
                             directory.path());
  check_no_errors(report);
  CHECK(report.at("prefix_hits") == hits);
  CHECK(report.at("blocks") == blocks);
  CHECK(report.at("skipped") == 0);
}

}  // namespace

TEST_CASE("one engine that replays a trace in order hits exactly what it must", "[integration]") {
  TemporaryDirectory directory;
  std::vector<std::string> options = {"--local", "--engines",  "1",      "--block-bytes",
                                      "4096",    "--cpu-pool", "256MiB", "--json"};
  if (std::filesystem::exists(recorded_trace("conversation_trace.jsonl"))) {
    const std::string trace = recorded_trace("conversation_trace.jsonl");
    options.insert(options.end(), {"--trace", trace, "--limit", "1500"});
    const Expected expected = expect(trace, 1500);
    REQUIRE(expected.hits > 0);
    const Json report = replay(options, directory.path());
    check_no_errors(report);
    CHECK(report.at("requests") == 1500);
    CHECK(report.at("blocks") == expected.blocks);
    CHECK(report.at("prefix_hits") == expected.hits);
    return;
  }
  WARN("no recorded traces beside this checkout: replaying a generated one");
  options.insert(options.end(), {"--generate", "chat", "--requests", "1500"});
  const Json report = replay(options, directory.path());
  check_no_errors(report);
  CHECK(report.at("requests") == 1500);
  CHECK(report.at("prefix_hits") > 0);
}

TEST_CASE("the recorded conversation hits 105710 of its 288500 blocks", "[integration][.torture]") {
  check_recorded("conversation_trace.jsonl", 105710, 288500);
}

TEST_CASE("the recorded synthetic trace hits 77953 of its 121877 blocks",
          "[integration][.torture]") {
  check_recorded("synthetic_trace.jsonl", 77953, 121877);
}

TEST_CASE("four engines on two workers share HOST pools without a wrong byte", "[integration]") {
  TemporaryDirectory directory;
  const Json report =
      replay({"--local", "--engines", "4", "--workers", "2", "--generate", "agents", "--requests",
              "800", "--block-bytes", "4096", "--cpu-pool", "256MiB", "--json"},
             directory.path());
  check_no_errors(report);
  CHECK(report.at("requests") == 800);
  CHECK(report.at("prefix_hits") > 0);
}

TEST_CASE("a pool that is too small makes room and never corrupts", "[integration][FC-35]") {
  TemporaryDirectory directory;
  const Json report = replay({"--local", "--engines", "2", "--generate", "rag", "--requests", "400",
                              "--block-bytes", "4096", "--cpu-pool", "4MiB", "--json"},
                             directory.path());
  check_no_errors(report);
  CHECK(report.at("stored") > 4 * kMiB / 4096);  // more than it can hold at once
}

TEST_CASE("a pool that is always full serves a steady stream without a skip", "[integration]") {
  TemporaryDirectory directory;
  constexpr uint64_t kBlocks = 16 * kMiB / 4096;
  const Json report =
      replay({"--local", "--engines", "2", "--generate", "rag", "--requests", "1500", "--warm-up",
              "300", "--block-bytes", "4096", "--cpu-pool", "16MiB", "--json"},
             directory.path());
  check_no_errors(report);
  CHECK(report.at("prefix_hits") > 0);
  CHECK(report.at("stored") > 4 * kBlocks);
  CHECK(report.at("skipped_after_warm_up") == 0);
  CHECK(report.at("fleet").at("check") == "clean");
  CHECK(report.at("fleet").at("evicted") > 3 * kBlocks);
}

TEST_CASE("a replay goes on while the server is killed and restarted under it", "[integration]") {
  Cluster cluster;
  WorkerTuning wide;
  wide.page_bytes = 4 * kKiB;
  wide.pool_bytes = 256 * kMiB;
  WorkerProcess& worker = cluster.add_worker(wide);
  const pid_t pid = worker.process().pid();
  Process replay(
      {.arguments = {program("berth-replay"), "--worker-socket", worker.socket(), "--engines", "1",
                     "--generate", "chat", "--requests", "3000", "--block-bytes", "4096", "--json"},
       .log = cluster.path("replay.log")});
  Admin& admin = cluster.server.admin();
  REQUIRE(eventually([&] { return cluster.pool(worker).usage().ready_replicas() > 1000; }));
  const uint64_t right_before = cluster.pool(worker).usage().ready_replicas();

  cluster.server.process().kill_hard();
  let_pass(seconds(1));  // an outage that requests fall into
  CHECK_FALSE(replay.has_ended());
  cluster.server.start();
  REQUIRE(eventually([&] { return worker.is_ready(); }));
  CHECK(worker.process().pid() == pid);
  CHECK_FALSE(worker.process().has_ended());
  const uint64_t right_after = cluster.pool(worker).usage().ready_replicas();
  CHECK(right_after >= right_before);

  const auto code = replay.wait_for_end(kReplayWithin);
  INFO(replay.log());
  REQUIRE(code == 0);
  const std::string text = replay.log();
  const size_t start = text.find('{');
  REQUIRE(start != std::string::npos);
  const Json report = Json::parse(text.substr(start, text.rfind('}') - start + 1));
  check_no_errors(report);
  CHECK(report.at("requests") == 3000);
  // What is READY was stored once: nothing that survived was written a second time.
  REQUIRE(eventually([&] { return admin.reservations().empty(); }));
  CHECK(cluster.pool(worker).usage().ready_replicas() == report.at("stored").get<uint64_t>());
  CHECK(cluster.allocated(worker) == report.at("stored").get<uint64_t>() * 4096);
  REQUIRE(eventually([&] { return admin.leases().empty(); }));
  cluster.check_at_rest();
}

}  // namespace berth::testing
