#include "tests/bench/rpc/figures.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tests/bench/rpc/report.h"

namespace berth::bench {
namespace {

Measure measure(uint64_t cycles, uint64_t items, uint64_t nanos) {
  Measure made;
  made.seconds = 2;
  made.cycles = cycles;
  made.items = items;
  made.server_cpu_seconds = 1;
  for (uint64_t i = 0; i < cycles; ++i) made.latency.record(nanos);
  return made;
}

// Two callers, batches of 10, two calls a cycle; three rounds on a machine that slows down.
Row row_of_three() {
  Row row;
  row.cell = {Workload::kStore, Api::kUnary, 2, 10};
  row.sizes = {{100, 50}, {80, 20}};
  row.calls_per_cycle = 2;
  row.items_per_cycle = 10;
  for (const uint64_t slow : {1u, 2u, 4u}) {
    Round round;
    round.echo = measure(400 / slow, 4000 / slow, 50'000 * slow);
    round.berth = measure(200 / slow, 2000 / slow, 100'000 * slow);
    round.core_items_per_second = 10'000.0 / static_cast<double>(slow);
    round.copies_per_second = 100'000.0 / static_cast<double>(slow);
    round.syncs_per_second = 200.0 / static_cast<double>(slow);
    round.disturbed.push_back({During::kFence,
                               measure(50 / slow, 500 / slow, 300'000 * slow),
                               {{"job_ms", 10.0 * static_cast<double>(slow)}}});
    row.rounds.push_back(round);
  }
  return row;
}

}  // namespace

TEST_CASE("a machine that slows down for a while moves no ratio", "[bench]") {
  const Figures figures = figures_of(row_of_three());
  CHECK(figures.ratios.items_of_echo.median == 0.5);
  CHECK(figures.ratios.items_of_echo.low == 0.5);
  CHECK(figures.ratios.items_of_echo.high == 0.5);
  CHECK(figures.ratios.p50_of_echo.median == Approx(2).epsilon(0.02));
  CHECK(figures.ratios.cpu_of_echo.median == 2);
  CHECK(figures.ratios.items_of_core.median == Approx(0.1));
  CHECK(figures.ratios.items_of_copies.median == Approx(0.001));
}

TEST_CASE("one fsync may serve a call of each caller", "[bench]") {
  Row row = row_of_three();
  const Figures figures = figures_of(row);
  REQUIRE(figures.ratios.calls_of_syncs);
  CHECK(figures.ratios.calls_of_syncs->median == Approx(0.5));  // 200 calls/s of 200 x 2
  for (Round& round : row.rounds) round.syncs_per_second = 0;
  CHECK_FALSE(figures_of(row).ratios.calls_of_syncs);
}

TEST_CASE("figures are medians of the rounds, with what lies around them", "[bench]") {
  const Figures figures = figures_of(row_of_three());
  CHECK(figures.berth.items_per_second.median == 500);
  CHECK(figures.berth.items_per_second.low == 250);
  CHECK(figures.berth.items_per_second.high == 1000);
}

TEST_CASE("what happens meanwhile is compared with the undisturbed run of its round", "[bench]") {
  const Figures figures = figures_of(row_of_three());
  REQUIRE(figures.disturbed.size() == 1);
  CHECK(figures.disturbed[0].items_of_undisturbed.median == Approx(0.25).epsilon(0.05));
  CHECK(figures.disturbed[0].p99_of_undisturbed.median == Approx(3).epsilon(0.03));
  CHECK(figures.disturbed[0].event.at("job_ms").median == 20);
}

TEST_CASE("the JSON names machine, plan, fleet and cell", "[bench]") {
  FleetResult fleet;
  fleet.facts.durability = "interval";
  fleet.facts.population = 10'000;
  fleet.rows.push_back(row_of_three());
  const auto json = nlohmann::json::parse(to_json(Plan(), MachineFacts{.cpu = "a cpu"}, {fleet}));
  CHECK(json["machine"]["cpu"] == "a cpu");
  CHECK(json["plan"]["runs"] == 5);
  CHECK(json["fleets"][0]["transport"] == "tcp");
  const auto& row = json["fleets"][0]["rows"][0];
  CHECK(row["workload"] == "reserve+commit");
  CHECK(row["ratios"]["items_of_echo"]["median"] == 0.5);
  CHECK(row["message_bytes"][0][0] == 100);
  CHECK(row["during"][0]["event"] == "fence");
  CHECK(row["during"][0]["job_ms"]["high"] == 40);
}

}  // namespace berth::bench
