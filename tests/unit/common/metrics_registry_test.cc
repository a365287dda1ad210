// Metrics: series exist from the start, labels are closed sets, gauges are computed when asked.
#include "common/metrics_registry.h"

#include <catch2/catch.hpp>

namespace berth {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("every declared series is there at zero before anything happened", "[common][metrics]") {
  MetricsRegistry registry;
  registry.counter({"berth_restarts_total", "Restarts."});
  registry.counters({"berth_rpcs_total", "Calls."},
                    {{"method", {"Probe", "Reserve"}}, {"result", {"ok", "error"}}});
  const std::string text = registry.render();
  CHECK(has_line(text, "# HELP berth_restarts_total Restarts."));
  CHECK(has_line(text, "# TYPE berth_restarts_total counter"));
  CHECK(has_line(text, "berth_restarts_total 0"));
  CHECK(has_line(text, R"(berth_rpcs_total{method="Probe",result="ok"} 0)"));
  CHECK(has_line(text, R"(berth_rpcs_total{method="Reserve",result="error"} 0)"));
}

TEST_CASE("a count lands in the series of its labels and in no other", "[common][metrics]") {
  MetricsRegistry registry;
  CounterFamily& rpcs =
      registry.counters({"berth_rpcs_total", "Calls."},
                        {{"method", {"Probe", "Reserve"}}, {"result", {"ok", "error"}}});
  rpcs.with({"Probe", "error"}).add();
  rpcs.with({"Reserve", "ok"}).add(41);
  rpcs.with({"Reserve", "ok"}).add();
  CHECK(rpcs.with({"Reserve", "ok"}).value() == 42);
  const std::string text = registry.render();
  CHECK(has_line(text, R"(berth_rpcs_total{method="Probe",result="ok"} 0)"));
  CHECK(has_line(text, R"(berth_rpcs_total{method="Probe",result="error"} 1)"));
  CHECK(has_line(text, R"(berth_rpcs_total{method="Reserve",result="ok"} 42)"));
}

TEST_CASE("a label value outside the declared set is counted as other and adds no series",
          "[common][metrics]") {
  MetricsRegistry registry;
  CounterFamily& rpcs = registry.counters({"berth_rpcs_total", "Calls."}, {{"method", {"Probe"}}});
  const size_t before = count_of(registry.render(), "berth_rpcs_total{");
  for (int i = 0; i < 100; ++i) rpcs.with({"made-up-" + std::to_string(i)}).add();
  const std::string text = registry.render();
  CHECK(count_of(text, "berth_rpcs_total{") == before);
  CHECK(has_line(text, R"(berth_rpcs_total{method="other"} 100)"));
  CHECK(has_line(text, R"(berth_rpcs_total{method="Probe"} 0)"));
}

TEST_CASE("a histogram counts what it observed in cumulative buckets", "[common][metrics]") {
  MetricsRegistry registry;
  HistogramFamily& latency = registry.histograms({"berth_rpc_seconds", "Latency."},
                                                 {{"method", {"Probe"}}}, {0.001, 0.01});
  latency.with({"Probe"}).observe(0.0005);
  latency.with({"Probe"}).observe(0.005);
  latency.with({"Probe"}).observe(1);
  const std::string text = registry.render();
  CHECK(has_line(text, R"(berth_rpc_seconds_bucket{method="Probe",le="0.001"} 1)"));
  CHECK(has_line(text, R"(berth_rpc_seconds_bucket{method="Probe",le="0.01"} 2)"));
  CHECK(has_line(text, R"(berth_rpc_seconds_bucket{method="Probe",le="+Inf"} 3)"));
  CHECK(has_line(text, R"(berth_rpc_seconds_count{method="other"} 0)"));
}

TEST_CASE("a collected gauge shows what is at the moment of the scrape", "[common][metrics]") {
  MetricsRegistry registry;
  double bytes = 10;
  bool pool_exists = true;
  registry.add_collector([&](MetricSamples& samples) {
    if (pool_exists)
      samples.gauge({"berth_pool_bytes", "Bytes."}, {{"medium", "cpu"}, {"state", "ready"}}, bytes);
    samples.counter({"berth_commits_total", "Commits."}, {}, 7);
  });
  CHECK(has_line(registry.render(), R"(berth_pool_bytes{medium="cpu",state="ready"} 10)"));
  bytes = 3;
  const std::string text = registry.render();
  CHECK(has_line(text, R"(berth_pool_bytes{medium="cpu",state="ready"} 3)"));
  CHECK(has_line(text, "# TYPE berth_commits_total counter"));
  CHECK(has_line(text, "berth_commits_total 7"));
  pool_exists = false;
  CHECK(count_of(registry.render(), "berth_pool_bytes") == 0);
}

TEST_CASE("several collectors of one name make one family", "[common][metrics]") {
  MetricsRegistry registry;
  for (const char* medium : {"cpu", "cxl"})
    registry.add_collector([medium](MetricSamples& samples) {
      samples.gauge({"berth_pool_bytes", "Bytes."}, {{"medium", medium}}, 1);
    });
  const std::string text = registry.render();
  CHECK(count_of(text, "# TYPE berth_pool_bytes gauge") == 1);
  CHECK(count_of(text, "berth_pool_bytes{") == 2);
}

TEST_CASE("a label value cannot break the format", "[common][metrics]") {
  MetricsRegistry registry;
  registry.add_collector([](MetricSamples& samples) {
    samples.gauge({"berth_x", "X."}, {{"node", "a\"} 1\nfake 2"}}, 1);
  });
  CHECK(has_line(registry.render(), "berth_x{node=\"a\\\"} 1\\nfake 2\"} 1"));
}

TEST_CASE("a flood of collected series is cut, and the cut is a metric", "[common][metrics]") {
  MetricsRegistry registry;
  registry.add_collector([](MetricSamples& samples) {
    for (size_t i = 0; i < kCollectedSeriesMax + 5; ++i)
      samples.gauge({"berth_x", "X."}, {{"i", std::to_string(i)}}, 1);
  });
  const std::string text = registry.render();
  CHECK(count_of(text, "berth_x{") == kCollectedSeriesMax);
  CHECK(has_line(text, "berth_metrics_dropped_series 5"));
}

}  // namespace berth
