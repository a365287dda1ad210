#include "tests/bench/rpc/options.h"

#include <catch2/catch.hpp>
#include <iostream>
#include <sstream>

namespace berth::bench {
namespace {

ParsedOptions parse(std::vector<const char*> words, std::string* refusal = nullptr) {
  words.insert(words.begin(), "berth-bench");
  std::ostringstream told;
  std::streambuf* before = std::cerr.rdbuf(told.rdbuf());
  ParsedOptions parsed = parse_options(static_cast<int>(words.size()), words.data());
  std::cerr.rdbuf(before);
  if (refusal) *refusal = told.str();
  return parsed;
}

std::string refusal_of(const std::vector<const char*>& words) {
  std::string refusal;
  CHECK(parse(words, &refusal).exit_code == 2);
  return refusal;
}

}  // namespace

TEST_CASE("without options the quick profile measures the promised shapes", "[bench]") {
  const ParsedOptions parsed = parse({});
  REQUIRE_FALSE(parsed.exit_code);
  const Plan& plan = parsed.options.plan;
  CHECK(plan.runs >= 5);
  CHECK(plan.populations == std::vector<uint64_t>{10'000});
  bool has_probe = false;
  for (const Cell& cell : plan.cells)
    has_probe = has_probe || (cell.workload == Workload::kProbe && cell.batch == 128);
  CHECK(has_probe);
}

TEST_CASE("lists make cells of every combination, but streams carry single operations", "[bench]") {
  const ParsedOptions parsed = parse(
      {"--workload", "probe,store", "--callers", "1,8", "--batch", "1,128", "--api", "unary,link"});
  REQUIRE_FALSE(parsed.exit_code);
  CHECK(parsed.options.plan.cells.size() == 2 * (2 * 2 + 2));
  for (const Cell& cell : parsed.options.plan.cells)
    CHECK((cell.api == Api::kUnary || cell.batch == 1));
}

TEST_CASE("what a profile says gives way to what is said", "[bench]") {
  const ParsedOptions parsed = parse({"--profile", "standard", "--population", "50000", "--runs",
                                      "9", "--durability", "sync,none"});
  REQUIRE_FALSE(parsed.exit_code);
  CHECK(parsed.options.plan.populations == std::vector<uint64_t>{50'000});
  CHECK(parsed.options.plan.durabilities == std::vector<std::string>{"sync", "none"});
  CHECK(parsed.options.plan.runs == 9);
}

TEST_CASE("a wrong value is refused by its option, with what is accepted", "[bench]") {
  CHECK(refusal_of({"--workload", "delete"}).find("--workload delete: accepted are probe") !=
        std::string::npos);
  CHECK(refusal_of({"--batch", "0"}).find("--batch 0: accepted are 1 to 4096") !=
        std::string::npos);
  CHECK(refusal_of({"--population", "100"}).find("--population") != std::string::npos);
  CHECK(refusal_of({"--during", "lunch"}).find("eviction, fence, stall, restart") !=
        std::string::npos);
  CHECK(refusal_of({"--workload", "probe", "--api", "link", "--batch", "128"}).find("--batch 1") !=
        std::string::npos);
  CHECK(refusal_of({"--load", "0.7", "--rate", "5"}).find("--rate") != std::string::npos);
}

TEST_CASE("the full profile holds every shape that the design's promises are about", "[bench]") {
  const ParsedOptions parsed = parse({"--profile", "full", "--dry-run"});
  REQUIRE_FALSE(parsed.exit_code);
  CHECK(parsed.options.is_dry_run);
  const Plan& plan = parsed.options.plan;
  CHECK(plan.populations == std::vector<uint64_t>{10'000, 1'000'000, 10'000'000});
  CHECK(plan.transports.size() == 2);
  CHECK(plan.durabilities.size() == 3);
  for (const Workload workload : {Workload::kProbe, Workload::kAcquire, Workload::kStore})
    for (const uint64_t callers : {1u, 8u, 64u})
      for (const uint64_t batch : {1u, 32u, 128u, 512u})
        CHECK(std::count_if(plan.cells.begin(), plan.cells.end(), [&](const Cell& cell) {
                return cell.workload == workload && cell.callers == callers &&
                       cell.batch == batch && cell.api == Api::kUnary;
              }) == 1);
}

TEST_CASE("the estimate of a plan grows with everything that is in it", "[bench]") {
  const Plan plan = parse({"--workload", "probe", "--callers", "8", "--batch", "128", "--api",
                           "unary", "--runs", "5", "--seconds", "1"})
                        .options.plan;
  const double once = seconds_of(plan);
  CHECK(once > 5 * 2 * plan.seconds);
  CHECK(once < 60);
  Plan larger = plan;
  larger.populations = {10'000'000};
  CHECK(seconds_of(larger) > once + 60);
  Plan longer = plan;
  longer.transports = {Transport::kTcp, Transport::kUnix};
  longer.during = {During::kStall};
  CHECK(seconds_of(longer) > 2.5 * once);
  CHECK(summary_of(longer).find("2 fleets") == 0);
}

}  // namespace berth::bench
