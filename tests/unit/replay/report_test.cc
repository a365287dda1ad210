// Figures: percentiles, the JSON object, and what one process tells another.
#include "worker/replay/report.h"

#include <catch2/catch.hpp>
#include <numeric>

namespace berth::replay {
namespace {

ReplayResult make_result() {
  ReplayResult result;
  result.seconds = 2;
  result.engines = 2;
  result.block_bytes = 4096;
  result.counts.requests = 10;
  result.counts.blocks = 40;
  result.counts.prefix_hits = 10;
  result.counts.stored = 30;
  result.counts.store_nanos = 3'000'000'000;
  result.counts.loaded_items = 10;
  result.counts.load_nanos = 500'000'000;
  result.counts.skipped_by_reason["skipped_pool_full"] = 4;
  result.counts.probe_micros = {5, 1, 3, 2, 4};
  return result;
}

TEST_CASE("a percentile is a sample of its own, from all samples", "[replay][report]") {
  std::vector<uint32_t> samples(1000);
  std::iota(samples.rbegin(), samples.rend(), 1);
  CHECK(percentile(samples, 50) == 500);
  CHECK(percentile(samples, 99) == 990);
  CHECK(percentile(samples, 100) == 1000);
  CHECK(percentile({7}, 1) == 7);
  CHECK(percentile({}, 99) == 0);
}

TEST_CASE("the JSON object has every key that programs rely on", "[replay][report]") {
  const std::string json = to_json(make_result());
  for (const char* key : {"requests",
                          "blocks",
                          "prefix_hits",
                          "prefix_hit_ratio",
                          "stored",
                          "already_present",
                          "skipped",
                          "load_errors",
                          "verify_errors",
                          "seconds",
                          "probe_p50_us",
                          "probe_p99_us",
                          "store_items_per_s",
                          "load_items_per_s",
                          "rejoins",
                          "misses_unavailable",
                          "not_stored",
                          "load_fallbacks",
                          "store_errors",
                          "being_written",
                          "engines_lost"})
    CHECK(json.find("\"" + std::string(key) + "\":") != std::string::npos);
  CHECK(json.find("\"prefix_hit_ratio\":0.25,") != std::string::npos);
  CHECK(json.find("\"probe_p50_us\":3,") != std::string::npos);
  // 30 items in 3 engine-seconds, by two engines side by side.
  CHECK(json.find("\"store_items_per_s\":20.0") != std::string::npos);
  CHECK(json.find("\"skipped_pool_full\":4") != std::string::npos);
}

TEST_CASE("a result is clean without wrong bytes, errors and lost engines", "[replay][report]") {
  CHECK(make_result().is_clean());
  for (uint64_t Counts::*figure :
       {&Counts::verify_errors, &Counts::load_errors, &Counts::store_errors}) {
    ReplayResult result = make_result();
    result.counts.*figure = 1;
    CHECK_FALSE(result.is_clean());
  }
  ReplayResult result = make_result();
  result.engines_lost = 1;
  CHECK_FALSE(result.is_clean());
}

TEST_CASE("counts survive the way between two processes and add up", "[replay][report]") {
  const Counts counts = make_result().counts;
  const auto received = counts_from_json(counts_to_json(counts));
  REQUIRE(received);
  CHECK(counts_to_json(*received) == counts_to_json(counts));
  Counts sum;
  sum.add(counts);
  sum.add(*received);
  CHECK(sum.blocks == 80);
  CHECK(sum.probe_micros.size() == 10);
  CHECK(sum.skipped_by_reason.at("skipped_pool_full") == 8);
  CHECK_FALSE(counts_from_json("{\"requests\": 1}"));
  CHECK_FALSE(counts_from_json("counts"));
}

}  // namespace
}  // namespace berth::replay
