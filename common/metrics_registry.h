// Metrics of one process, in the Prometheus text format.
//
// Two kinds. What happens is counted as it happens: counters and histograms, declared at start with
// closed sets of label values, so that each series exists at zero from the first scrape and no
// input can add one. What *is* is computed when asked: collectors read the directory at scrape
// time, so a gauge cannot drift from what it describes.
//
// Declaring happens before threads start; counting and rendering are thread-safe. References stay
// valid as long as the registry. Names and labels are ours: a bad one is a bug and ends in CHECK.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prometheus {
class Counter;
class Histogram;
}  // namespace prometheus

namespace berth {

// What a value outside a label's set is counted as.
inline constexpr std::string_view kOtherLabelValue = "other";
// Of one family, "other" included. A family this large is a mistake in its labels.
inline constexpr size_t kSeriesPerFamilyMax = 4096;
// Of all collectors in one scrape. More are dropped, and berth_metrics_dropped_series says how
// many.
inline constexpr size_t kCollectedSeriesMax = 20000;

struct MetricName {
  std::string name;  // berth_..., counters end in _total, durations are in seconds
  std::string help;
};

// One label and all values that it can have.
struct LabelSet {
  std::string name;
  std::vector<std::string> values;
};

class Counter {
 public:
  explicit Counter(prometheus::Counter& counter) : counter_(&counter) {}
  void add(uint64_t count = 1);
  uint64_t value() const;

 private:
  prometheus::Counter* counter_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram& histogram) : histogram_(&histogram) {}
  void observe(double value);

 private:
  prometheus::Histogram* histogram_;
};

// The series of one metric, one for each combination of label values.
template <class Series>
class MetricFamilyOf {
 public:
  explicit MetricFamilyOf(std::vector<LabelSet> labels) : labels_(std::move(labels)) {}

  // `values` in the order of the declared labels. Unknown values count as "other".
  Series& with(std::initializer_list<std::string_view> values);

 private:
  friend class MetricsRegistry;
  std::vector<LabelSet> labels_;
  std::vector<Series> series_;  // the last label varies fastest
};
using CounterFamily = MetricFamilyOf<Counter>;
using HistogramFamily = MetricFamilyOf<Histogram>;

// What a collector reports in one scrape. Same names from several collectors are put together.
class MetricSamples {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  MetricSamples();
  ~MetricSamples();
  MetricSamples(const MetricSamples&) = delete;
  MetricSamples& operator=(const MetricSamples&) = delete;

  void gauge(const MetricName& name, Labels labels, double value);
  // For totals that the directory itself counts.
  void counter(const MetricName& name, Labels labels, double value);

 private:
  friend class MetricsRegistry;
  struct Families;
  std::unique_ptr<Families> families_;
};

class MetricsRegistry {
 public:
  using Collector = std::function<void(MetricSamples&)>;

  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  Counter& counter(MetricName name);
  CounterFamily& counters(MetricName name, std::vector<LabelSet> labels);
  HistogramFamily& histograms(MetricName name, std::vector<LabelSet> labels,
                              std::vector<double> upper_bounds);

  // Called in each render(), on the caller's thread. What it reads must outlive the last render().
  void add_collector(Collector collector);

  // Everything, in the text exposition format 0.0.4.
  std::string render() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// From 100 us to 10 s: what an rpc or a commit takes.
std::vector<double> latency_buckets();

inline constexpr std::string_view kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace berth
