#include "tests/bench/rpc/suite.h"

#include <optional>

#include "tests/bench/rpc/cell_run.h"

namespace berth::bench {
namespace {

constexpr uint64_t kTraceChunksMax = 4096;  // of one request, by berthd's default limits

Result<std::vector<replay::Request>> requests_of(const Plan& plan) {
  if (!plan.trace.empty()) return replay::read_trace(plan.trace, plan.requests);
  return replay::generate_trace(plan.generate, plan.seed, plan.requests);
}

Result<FleetResult> run_fleet(const Plan& plan, FleetResult result, CoreFloor& core,
                              TraceSource* trace, const SuiteListener& listener) {
  FleetSettings settings;
  settings.transport = result.facts.transport;
  settings.durability = result.facts.durability;
  settings.population = result.facts.population;
  settings.members = plan.members;
  settings.directory = plan.directory;
  settings.has_slow_disk = plan.has(During::kStall);
  const auto fleet = Fleet::start(settings);
  if (!fleet) return tl::unexpected(fleet.error());
  result.facts.resident_bytes_per_object = (*fleet)->resident_bytes_per_object();
  result.facts.fill_seconds = (*fleet)->fill_seconds();
  listener.on_fleet(result.facts);
  for (const Cell& cell : plan.cells) {
    TraceSource* cell_trace = cell.workload == Workload::kTrace ? trace : nullptr;
    Result<Row> row = run_cell({**fleet, core, cell_trace, plan, result.facts}, cell, listener);
    if (!row) {
      Error why = row.error();
      why.message = name_of(cell.workload) + ", " + std::to_string(cell.callers) +
                    " callers, batch " + std::to_string(cell.batch) + ": " + why.message;
      if ((*fleet)->berthd().has_ended())
        why.message += "\nberthd ended:\n" + (*fleet)->berthd().log_tail();
      return tl::unexpected(why);
    }
    listener.on_row(result.facts, *row);
    result.rows.push_back(std::move(*row));
  }
  return result;
}

}  // namespace

Result<std::vector<FleetResult>> run_suite(const Plan& plan, const SuiteListener& listener) {
  std::vector<FleetResult> results;
  std::optional<TraceSource> trace;
  for (const Cell& cell : plan.cells)
    if (cell.workload == Workload::kTrace && !trace) {
      const auto requests = requests_of(plan);
      if (!requests) return tl::unexpected(requests.error());
      trace.emplace(*requests, plan.members, kTraceChunksMax);
    }
  for (const uint64_t population : plan.populations) {
    CoreFloor core(population);
    for (const Transport transport : plan.transports)
      for (const std::string& durability : plan.durabilities) {
        FleetResult fleet;
        fleet.facts.transport = transport;
        fleet.facts.durability = durability;
        fleet.facts.population = population;
        Result<FleetResult> result =
            run_fleet(plan, std::move(fleet), core, trace ? &*trace : nullptr, listener);
        if (!result) return tl::unexpected(result.error());
        results.push_back(std::move(*result));
      }
  }
  return results;
}

Spread over_rounds(const Row& row, const std::function<double(const Round&)>& figure) {
  std::vector<double> values;
  for (const Round& round : row.rounds) values.push_back(figure(round));
  return spread_of(std::move(values));
}

}  // namespace berth::bench
