#include "common/metrics_registry.h"

#include <prometheus/check_names.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <sstream>

#include "common/check.h"

namespace berth {
namespace {

using PrometheusLabels = std::map<std::string, std::string>;

void check_name(const MetricName& name) {
  BERTH_CHECK(prometheus::CheckMetricName(name.name), name.name.c_str());
}

// Adds "other" to each set and calls make(labels) for each combination, the last label fastest.
template <class Make>
void for_each_combination(std::vector<LabelSet>& labels, Make make) {
  size_t count = 1;
  for (LabelSet& label : labels) {
    BERTH_CHECK(prometheus::CheckLabelName(label.name), label.name.c_str());
    if (std::count(label.values.begin(), label.values.end(), kOtherLabelValue) == 0)
      label.values.emplace_back(kOtherLabelValue);
    count *= label.values.size();
    BERTH_CHECK(count <= kSeriesPerFamilyMax, label.name.c_str());
  }
  for (size_t i = 0; i < count; ++i) {
    PrometheusLabels combination;
    size_t rest = i;
    for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
      combination[label->name] = label->values[rest % label->values.size()];
      rest /= label->values.size();
    }
    make(combination);
  }
}

size_t index_in(const LabelSet& label, std::string_view value) {
  auto found = std::find(label.values.begin(), label.values.end(), value);
  if (found == label.values.end())
    found = std::find(label.values.begin(), label.values.end(), kOtherLabelValue);
  return static_cast<size_t>(found - label.values.begin());
}

}  // namespace

void Counter::add(uint64_t count) { counter_->Increment(static_cast<double>(count)); }
uint64_t Counter::value() const { return static_cast<uint64_t>(counter_->Value()); }

void Histogram::observe(double value) { histogram_->Observe(value); }

template <class Series>
Series& MetricFamilyOf<Series>::with(std::initializer_list<std::string_view> values) {
  BERTH_CHECK(values.size() == labels_.size(), "a metric got another number of labels");
  size_t index = 0;
  auto label = labels_.begin();
  for (std::string_view value : values) {
    index = index * label->values.size() + index_in(*label, value);
    ++label;
  }
  return series_[index];
}
template class MetricFamilyOf<Counter>;
template class MetricFamilyOf<Histogram>;

struct MetricSamples::Families {
  std::map<std::string, prometheus::MetricFamily> by_name;
  size_t series = 0;
  size_t dropped = 0;

  // The new sample, or null when there are too many.
  prometheus::ClientMetric* add(const MetricName& name, prometheus::MetricType type,
                                Labels labels) {
    if (series >= kCollectedSeriesMax) {
      ++dropped;
      return nullptr;
    }
    ++series;
    prometheus::MetricFamily& family = by_name[name.name];
    if (family.metric.empty()) {
      check_name(name);
      family.name = name.name;
      family.help = name.help;
      family.type = type;
    }
    prometheus::ClientMetric& sample = family.metric.emplace_back();
    for (const auto& [label, value] : labels)
      sample.label.push_back({std::string(label), std::string(value)});
    return &sample;
  }
};

MetricSamples::MetricSamples() : families_(std::make_unique<Families>()) {}
MetricSamples::~MetricSamples() = default;

void MetricSamples::gauge(const MetricName& name, Labels labels, double value) {
  if (auto* sample = families_->add(name, prometheus::MetricType::Gauge, labels))
    sample->gauge.value = value;
}

void MetricSamples::counter(const MetricName& name, Labels labels, double value) {
  if (auto* sample = families_->add(name, prometheus::MetricType::Counter, labels))
    sample->counter.value = value;
}

struct MetricsRegistry::State {
  prometheus::Registry registry;
  std::set<std::string> names;
  // Deques: references to elements stay valid.
  std::deque<CounterFamily> counters;
  std::deque<HistogramFamily> histograms;
  std::vector<Collector> collectors;

  void claim(const MetricName& name) {
    check_name(name);
    BERTH_CHECK(names.insert(name.name).second, name.name.c_str());
  }
};

MetricsRegistry::MetricsRegistry() : state_(std::make_unique<State>()) {}
MetricsRegistry::~MetricsRegistry() = default;

CounterFamily& MetricsRegistry::counters(MetricName name, std::vector<LabelSet> labels) {
  state_->claim(name);
  auto& family =
      prometheus::BuildCounter().Name(name.name).Help(name.help).Register(state_->registry);
  CounterFamily& result = state_->counters.emplace_back(std::move(labels));
  for_each_combination(result.labels_, [&](const PrometheusLabels& combination) {
    result.series_.emplace_back(family.Add(combination));
  });
  return result;
}

Counter& MetricsRegistry::counter(MetricName name) {
  return counters(std::move(name), {}).with({});
}

HistogramFamily& MetricsRegistry::histograms(MetricName name, std::vector<LabelSet> labels,
                                             std::vector<double> upper_bounds) {
  state_->claim(name);
  auto& family =
      prometheus::BuildHistogram().Name(name.name).Help(name.help).Register(state_->registry);
  HistogramFamily& result = state_->histograms.emplace_back(std::move(labels));
  for_each_combination(result.labels_, [&](const PrometheusLabels& combination) {
    result.series_.emplace_back(family.Add(combination, upper_bounds));
  });
  return result;
}

void MetricsRegistry::add_collector(Collector collector) {
  state_->collectors.push_back(std::move(collector));
}

std::string MetricsRegistry::render() const {
  MetricSamples samples;
  for (const Collector& collector : state_->collectors) collector(samples);
  std::vector<prometheus::MetricFamily> families = state_->registry.Collect();
  const auto dropped = static_cast<double>(samples.families_->dropped);
  samples.families_->series = 0;
  samples.gauge({"berth_metrics_dropped_series", "Series beyond the bound of one scrape."}, {},
                dropped);
  for (auto& [name, family] : samples.families_->by_name) families.push_back(std::move(family));
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return text.str();
}

std::vector<double> latency_buckets() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
          0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
}

}  // namespace berth
