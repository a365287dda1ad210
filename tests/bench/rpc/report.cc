#include "tests/bench/rpc/report.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/version.h"
#include "tests/bench/rpc/figures.h"
#include "tests/bench/rpc/json_figures.h"

namespace berth::bench {
namespace {

using Json = nlohmann::ordered_json;

template <class... Values>
std::string text(const char* format, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

std::string with_unit(double value) {
  if (value >= 1e6) return text("%.2fM", value / 1e6);
  if (value >= 1e4) return text("%.0fk", value / 1e3);
  if (value >= 1e3) return text("%.1fk", value / 1e3);
  return text("%.0f", value);
}

std::string with_spread(const Spread& ratio) {
  return text("%.2f [%.2f-%.2f]", ratio.median, ratio.low, ratio.high);
}

// A dash where there is no such floor.
std::string ratio_or_dash(const Spread& ratio) {
  return ratio.median > 0 ? text("%.3f", ratio.median) : "-";
}

Json json_of(const Side& side) {
  Json json;
  json["items_per_second"] = json_of(side.items_per_second);
  json["p50_us"] = json_of(side.p50_us);
  json["p90_us"] = json_of(side.p90_us);
  json["p99_us"] = json_of(side.p99_us);
  json["p99.9_us"] = json_of(side.p999_us);
  json["max_us"] = json_of(side.max_us);
  json["server_cpu_us_per_item"] = json_of(side.server_cpu_us_per_item);
  json["failures"] = json_of(side.failures);
  return json;
}

Json json_of(const Ratios& ratios) {
  Json json;
  json["items_of_echo"] = json_of(ratios.items_of_echo);
  json["p50_of_echo"] = json_of(ratios.p50_of_echo);
  json["p99_of_echo"] = json_of(ratios.p99_of_echo);
  json["p99.9_of_echo"] = json_of(ratios.p999_of_echo);
  json["server_cpu_of_echo"] = json_of(ratios.cpu_of_echo);
  json["items_of_core"] = json_of(ratios.items_of_core);
  json["items_of_copies"] = json_of(ratios.items_of_copies);
  if (ratios.calls_of_syncs) json["calls_of_syncs"] = json_of(*ratios.calls_of_syncs);
  return json;
}

Json json_of(const DisturbedFigures& figures) {
  Json json;
  json["event"] = name_of(figures.during);
  for (const auto& [name, value] : figures.event) json[name] = json_of(value);
  json["items_of_undisturbed"] = json_of(figures.items_of_undisturbed);
  json["p50_of_undisturbed"] = json_of(figures.p50_of_undisturbed);
  json["p99_of_undisturbed"] = json_of(figures.p99_of_undisturbed);
  json["p99.9_of_undisturbed"] = json_of(figures.p999_of_undisturbed);
  json["berth"] = json_of(figures.berth);
  return json;
}

Json json_of(const Row& row) {
  Json json;
  json["workload"] = name_of(row.cell.workload);
  json["api"] = name_of(row.cell.api);
  json["callers"] = row.cell.callers;
  json["batch"] = row.cell.batch;
  json["items_per_cycle"] = rounded(row.items_per_cycle);
  json["calls_per_cycle"] = rounded(row.calls_per_cycle);
  if (row.cycles_per_second > 0) json["cycles_per_second"] = rounded(row.cycles_per_second);
  for (const MessageSizes& size : row.sizes)
    json["message_bytes"].push_back({size.request_bytes, size.answer_bytes});
  const Figures figures = figures_of(row);
  json["ratios"] = json_of(figures.ratios);
  json["berth"] = json_of(figures.berth);
  json["echo"] = json_of(figures.echo);
  for (const DisturbedFigures& disturbed : figures.disturbed)
    json["during"].push_back(json_of(disturbed));
  const auto floor = [&](double Round::*value) {
    return json_of(over_rounds(row, [value](const Round& round) { return round.*value; }));
  };
  json["core_items_per_second"] = floor(&Round::core_items_per_second);
  json["copies_per_second"] = floor(&Round::copies_per_second);
  if (figures.ratios.calls_of_syncs) json["syncs_per_second"] = floor(&Round::syncs_per_second);
  return json;
}

Json json_of(const Plan& plan) {
  Json json;
  json["runs"] = plan.runs;
  json["seconds"] = plan.seconds;
  json["warm_up_seconds"] = plan.warm_up_seconds;
  json["sessions"] = plan.members;
  json["seed"] = plan.seed;
  if (plan.load > 0) json["load"] = plan.load;
  return json;
}

std::string header_of(const FleetFacts& facts) {
  std::string header = text(
      "\n%s, durability %s, %s objects: %.0f bytes of berthd's memory for each, filled at %s/s\n",
      name_of(facts.transport).c_str(), facts.durability.c_str(),
      with_unit(static_cast<double>(facts.population)).c_str(), facts.resident_bytes_per_object,
      with_unit(static_cast<double>(facts.population) / facts.fill_seconds).c_str());
  header +=
      text("%-15s %-5s %7s %5s │ %7s %-17s │ %7s %7s %7s %8s %-9s │ %7s %-7s │ %6s %7s %6s\n",
           "workload", "api", "callers", "batch", "items/s", "of echo [spread]", "p50 us", "p99",
           "p99.9", "max", "p50/echo", "cpu us", "of echo", "/core", "/memcpy", "/fsync");
  return header;
}

std::string line_of(const Row& row, const Figures& f) {
  const Side& berth = f.berth;
  return text(
      "%-15s %-5s %7llu %5s │ %7s %-17s │ %7.0f %7.0f %7.0f %8.0f %-9.2f │ %7.2f %-7.2f │ %6s "
      "%7.4f %6s%s\n",
      name_of(row.cell.workload).c_str(), name_of(row.cell.api).c_str(),
      static_cast<unsigned long long>(row.cell.callers),
      row.cell.batch > 0 ? std::to_string(row.cell.batch).c_str() : "-",
      with_unit(berth.items_per_second.median).c_str(), with_spread(f.ratios.items_of_echo).c_str(),
      berth.p50_us.median, berth.p99_us.median, berth.p999_us.median, berth.max_us.median,
      f.ratios.p50_of_echo.median, berth.server_cpu_us_per_item.median, f.ratios.cpu_of_echo.median,
      ratio_or_dash(f.ratios.items_of_core).c_str(), f.ratios.items_of_copies.median,
      ratio_or_dash(f.ratios.calls_of_syncs.value_or(Spread())).c_str(),
      row.cycles_per_second > 0
          ? text(" open at %s cycles/s", with_unit(row.cycles_per_second).c_str()).c_str()
          : "");
}

std::string disturbed_line(const DisturbedFigures& figures) {
  const Side& berth = figures.berth;
  std::string line = text(
      "  during %-22s │ %7s %-17s │ %7.0f %7.0f %7.0f %8.0f %-9.2f │",
      name_of(figures.during).c_str(), with_unit(berth.items_per_second.median).c_str(),
      with_spread(figures.items_of_undisturbed).c_str(), berth.p50_us.median, berth.p99_us.median,
      berth.p999_us.median, berth.max_us.median, figures.p50_of_undisturbed.median);
  line += text(" by undisturbed: p99 %.2f p99.9 %.2f;", figures.p99_of_undisturbed.median,
               figures.p999_of_undisturbed.median);
  for (const auto& [name, value] : figures.event)
    line += " " + name + " " + with_unit(value.median);
  if (berth.failures.median > 0) line += " failed " + with_unit(berth.failures.median);
  return line + "\n";
}

}  // namespace

std::string fleet_header(const FleetFacts& facts) { return header_of(facts); }

std::string table_row(const FleetFacts&, const Row& row) {
  const Figures figures = figures_of(row);
  std::string lines = line_of(row, figures);
  for (const DisturbedFigures& disturbed : figures.disturbed) lines += disturbed_line(disturbed);
  return lines;
}

std::string to_json(const Plan& plan, const MachineFacts& machine,
                    const std::vector<FleetResult>& results) {
  Json json;
  json["berth"] = kVersion;
  json["machine"] = json_of(machine);
  json["plan"] = json_of(plan);
  json["fleets"] = Json::array();
  for (const FleetResult& result : results) {
    Json fleet;
    fleet["transport"] = name_of(result.facts.transport);
    fleet["durability"] = result.facts.durability;
    fleet["population"] = result.facts.population;
    fleet["resident_bytes_per_object"] = rounded(result.facts.resident_bytes_per_object);
    fleet["fill_seconds"] = rounded(result.facts.fill_seconds);
    for (const Row& row : result.rows) fleet["rows"].push_back(json_of(row));
    json["fleets"].push_back(std::move(fleet));
  }
  return json.dump(1);
}

}  // namespace berth::bench
