#include "worker/replay/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/units.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

// The plain numbers of Counts by their names, once, for both directions.
template <class CountsType, class Visit>
void visit_counts(CountsType& counts, Visit visit) {
  visit("requests", counts.requests);
  visit("blocks", counts.blocks);
  visit("prefix_hits", counts.prefix_hits);
  visit("stored", counts.stored);
  visit("already_present", counts.already_present);
  visit("being_written", counts.being_written);
  visit("skipped", counts.skipped);
  visit("skipped_after_warm_up", counts.skipped_after_warm_up);
  visit("not_stored", counts.not_stored);
  visit("load_errors", counts.load_errors);
  visit("store_errors", counts.store_errors);
  visit("verify_errors", counts.verify_errors);
  visit("load_fallbacks", counts.load_fallbacks);
  visit("misses_unavailable", counts.misses_unavailable);
  visit("rejoins", counts.rejoins);
  visit("loaded_items", counts.loaded_items);
  visit("load_nanos", counts.load_nanos);
  visit("store_nanos", counts.store_nanos);
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

double hit_ratio(const Counts& counts) {
  return ratio(static_cast<double>(counts.prefix_hits), static_cast<double>(counts.blocks));
}

// Items a second of all engines together, counting only the time they spent on it.
double items_per_second(uint64_t items, uint64_t nanos, uint32_t engines) {
  return ratio(static_cast<double>(items) * engines, static_cast<double>(nanos) / 1e9);
}

double rounded(double value, double per_one) { return std::round(value * per_one) / per_one; }

Json to_json(const FleetFigures& fleet) {
  Json json;
  json["check"] = fleet.broken.empty() ? "clean" : fleet.broken;
  json["policy"] = fleet.policy;
  json["eviction_slices"] = fleet.eviction_slices;
  json["evicted"] = fleet.evicted_replicas;
  json["slice_replicas_max"] = fleet.slice_replicas_max;
  json["slice_us_max"] = fleet.slice_micros_max;
  json["nothing_evictable"] = fleet.nothing_evictable;
  return json;
}

std::string line(const char* format, auto... values) {
  char text[200];
  std::snprintf(text, sizeof text, format, values...);
  return std::string(text) + "\n";
}

}  // namespace

bool ReplayResult::is_clean() const {
  return counts.verify_errors == 0 && counts.load_errors == 0 && counts.store_errors == 0 &&
         engines_lost == 0 && (!fleet || fleet->broken.empty());
}

uint32_t percentile(std::vector<uint32_t> samples, double percent) {
  if (samples.empty()) return 0;
  const double rank = std::ceil(percent / 100 * static_cast<double>(samples.size()));
  const auto index = static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(samples.begin(), samples.begin() + index, samples.end());
  return samples[static_cast<size_t>(index)];
}

std::string to_json(const ReplayResult& result) {
  const Counts& counts = result.counts;
  Json json;
  visit_counts(counts, [&json](const char* name, uint64_t value) { json[name] = value; });
  json.erase("load_nanos");
  json.erase("store_nanos");
  json["prefix_hit_ratio"] = rounded(hit_ratio(counts), 1e6);
  json["skipped_by_reason"] = Json::object();
  for (const auto& [reason, count] : counts.skipped_by_reason)
    json["skipped_by_reason"][reason] = count;
  json["skipped_after_warm_up_by_reason"] = Json::object();
  for (const auto& [reason, count] : counts.skipped_after_warm_up_by_reason)
    json["skipped_after_warm_up_by_reason"][reason] = count;
  json["engines"] = result.engines;
  json["engines_lost"] = result.engines_lost;
  json["seconds"] = rounded(result.seconds, 1e3);
  json["probe_p50_us"] = percentile(counts.probe_micros, 50);
  json["probe_p99_us"] = percentile(counts.probe_micros, 99);
  json["store_items_per_s"] =
      rounded(items_per_second(counts.stored, counts.store_nanos, result.engines), 10);
  json["load_items_per_s"] =
      rounded(items_per_second(counts.loaded_items, counts.load_nanos, result.engines), 10);
  if (result.fleet) json["fleet"] = to_json(*result.fleet);
  return json.dump();
}

std::string to_text(const ReplayResult& result) {
  const Counts& counts = result.counts;
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::string text;
  text += line("requests          %llu in %.1f s, %u engine%s", number(counts.requests),
               result.seconds, result.engines, result.engines == 1 ? "" : "s");
  text += line("blocks            %llu of %s", number(counts.blocks),
               format_size(result.block_bytes).c_str());
  text += line("prefix hits       %llu (%.4f), every byte verified", number(counts.prefix_hits),
               hit_ratio(counts));
  text += line("stored            %llu, already present %llu, being written %llu",
               number(counts.stored), number(counts.already_present), number(counts.being_written));
  text += line("skipped           %llu, granted but not stored %llu", number(counts.skipped),
               number(counts.not_stored));
  for (const auto& [reason, count] : counts.skipped_by_reason)
    text += line("                  %llu %s", number(count), reason.c_str());
  if (counts.skipped_after_warm_up > 0)
    text += line("                  %llu after the warm-up", number(counts.skipped_after_warm_up));
  if (result.fleet) {
    const FleetFigures& fleet = *result.fleet;
    text += line(
        "evicted           %llu by %s, %llu slices, the largest %llu copies, the slowest %llu us",
        number(fleet.evicted_replicas), fleet.policy.c_str(), number(fleet.eviction_slices),
        number(fleet.slice_replicas_max), number(fleet.slice_micros_max));
    text += "check             " + (fleet.broken.empty() ? "clean" : fleet.broken) + "\n";
  }
  text += line("probe             p50 %u us, p99 %u us", percentile(counts.probe_micros, 50),
               percentile(counts.probe_micros, 99));
  text += line("store, load       %.0f and %.0f items/s",
               items_per_second(counts.stored, counts.store_nanos, result.engines),
               items_per_second(counts.loaded_items, counts.load_nanos, result.engines));
  if (counts.misses_unavailable || counts.rejoins || counts.load_fallbacks)
    text += line(
        "outages           %llu requests missed, %llu rejoins, %llu promised blocks not had",
        number(counts.misses_unavailable), number(counts.rejoins), number(counts.load_fallbacks));
  text += line("errors            %llu verify, %llu load, %llu store, %u engines lost",
               number(counts.verify_errors), number(counts.load_errors),
               number(counts.store_errors), result.engines_lost);
  return text;
}

std::string counts_to_json(const Counts& counts) {
  Json json;
  visit_counts(counts, [&json](const char* name, uint64_t value) { json[name] = value; });
  json["skipped_by_reason"] = counts.skipped_by_reason;
  json["skipped_after_warm_up_by_reason"] = counts.skipped_after_warm_up_by_reason;
  json["probe_micros"] = counts.probe_micros;
  return json.dump();
}

Result<Counts> counts_from_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  const auto refused =
      refuse(Reason::kInternal, "an engine process reported something else than counts");
  if (!json.is_object()) return refused;
  Counts counts;
  bool is_complete = true;
  visit_counts(counts, [&](const char* name, uint64_t& value) {
    const auto found = json.find(name);
    is_complete = is_complete && found != json.end() && found->is_number_unsigned();
    if (is_complete) value = found->template get<uint64_t>();
  });
  if (!is_complete || !json.contains("skipped_by_reason") ||
      !json.contains("skipped_after_warm_up_by_reason") || !json.contains("probe_micros"))
    return refused;
  counts.skipped_by_reason = json["skipped_by_reason"].get<std::map<std::string, uint64_t>>();
  counts.skipped_after_warm_up_by_reason =
      json["skipped_after_warm_up_by_reason"].get<std::map<std::string, uint64_t>>();
  counts.probe_micros = json["probe_micros"].get<std::vector<uint32_t>>();
  return counts;
}

}  // namespace berth::replay
