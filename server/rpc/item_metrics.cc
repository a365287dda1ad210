#include "server/rpc/item_metrics.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <variant>

namespace berth::rpc {
namespace {

// "STORE_CODE_SKIPPED_POOL_FULL" is "skipped_pool_full". Index: the enum's number.
std::vector<std::string> labels_of(const google::protobuf::EnumDescriptor& type,
                                   const std::string& prefix) {
  std::vector<std::string> labels;
  for (int i = 0; i < type.value_count(); ++i) {
    std::string label = type.value(i)->name().substr(prefix.size());
    std::transform(label.begin(), label.end(), label.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const auto number = static_cast<size_t>(type.value(i)->number());
    if (labels.size() <= number) labels.resize(number + 1, std::string(kOtherLabelValue));
    labels[number] = label;
  }
  return labels;
}

std::vector<Counter*> make(MetricsRegistry& registry, MetricName name, const char* label,
                           std::vector<std::string> labels) {
  auto& family = registry.counters(std::move(name), {{label, labels}});
  std::vector<Counter*> counters;
  for (const std::string& value : labels) counters.push_back(&family.with({value}));
  return counters;
}

std::vector<std::string> miss_labels() {
  auto labels = labels_of(*v1::MissReason_descriptor(), "MISS_REASON_");
  labels[0] = "none";
  return labels;
}

void add(const std::vector<Counter*>& counters, size_t number) {
  if (number < counters.size()) counters[number]->add();
}

// One addition for each code that occurs: a counter is shared by every thread.
void add_codes(const std::vector<Counter*>& counters, const std::vector<uint8_t>& codes) {
  std::vector<uint64_t> sums(counters.size());
  for (const uint8_t code : codes)
    if (code < sums.size()) ++sums[code];
  for (size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > 0) counters[i]->add(sums[i]);
}

}  // namespace

ItemMetrics::ItemMetrics(MetricsRegistry& registry)
    : stores_(make(registry,
                   {"berth_store_items_total", "Items of Reserve, by what became of them."},
                   "result", labels_of(*v1::StoreCode_descriptor(), "STORE_CODE_"))),
      commits_(make(registry,
                    {"berth_commit_items_total", "Items of Commit, by what became of them."},
                    "result", labels_of(*v1::CommitCode_descriptor(), "COMMIT_CODE_"))),
      probes_(make(registry,
                   {"berth_probes_total", "Probes, by why the chain stopped; none: it did not."},
                   "reason", miss_labels())),
      acquires_(
          make(registry,
               {"berth_acquires_total", "Acquires, by why the chain stopped; none: it did not."},
               "reason", miss_labels())),
      probed_chunks_(
          registry.counter({"berth_probed_chunks_total", "Usable chunks that probes found."})),
      acquired_chunks_(
          registry.counter({"berth_acquired_chunks_total", "Chunks that acquires protected."})) {}

void ItemMetrics::count(const Outcome& outcome) {
  if (const auto* reserved = std::get_if<Reserved>(&outcome)) {
    add_codes(stores_, reserved->codes);
  } else if (const auto* committed = std::get_if<Committed>(&outcome)) {
    add_codes(commits_, committed->codes);
  } else if (const auto* acquired = std::get_if<Acquired>(&outcome)) {
    add(acquires_, static_cast<size_t>(acquired->miss));
    acquired_chunks_.add(acquired->classes.size());
  }
}

void ItemMetrics::count(const v1::ProbeResponse& response) {
  add(probes_, static_cast<size_t>(response.miss_reason()));
  probed_chunks_.add(response.usable_chunks());
}

}  // namespace berth::rpc
