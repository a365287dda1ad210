#include "tests/bench/rpc/suite.h"

#include <algorithm>
#include <memory>

#include "tests/bench/rpc/core_floor.h"
#include "tests/bench/rpc/floors.h"

namespace berth::bench {
namespace {

constexpr double kCoreSeconds = 0.05;
constexpr double kCopySeconds = 0.01;
constexpr double kSyncSeconds = 0.1;

class CellRun {
 public:
  CellRun(Fleet& fleet, CoreFloor& core, const Plan& plan, const FleetFacts& facts,
          const Cell& cell)
      : fleet_(fleet), core_(core), plan_(plan), facts_(facts) {
    row_.cell = cell;
    settings_.workload = cell.workload;
    settings_.api = cell.api;
    settings_.batch = cell.batch;
    settings_.seed = plan.seed;
  }
  ~CellRun() {  // flows leave their slots
    const std::lock_guard lock(fleet_.loop().mutex());
    flows_.clear();
    echo_flows_.clear();
  }

  Result<Row> run(const SuiteListener& listener) {
    if (const Result<> made = make_flows(); !made) return tl::unexpected(made.error());
    if (const Result<> set = set_rate(); !set) return tl::unexpected(set.error());
    for (uint64_t i = 0; i < plan_.runs; ++i) {
      if (listener.is_stopped()) return refuse(Reason::kCancelled, "stopped");
      Result<Round> round = run_round(i);
      if (!round) return tl::unexpected(round.error());
      row_.rounds.push_back(std::move(*round));
    }
    return std::move(row_);
  }

 private:
  // One cycle of each flow says how large the messages are.
  Result<> make_flows() {
    const FleetView view = fleet_.view();
    {
      const std::lock_guard lock(fleet_.loop().mutex());
      for (uint64_t i = 0; i < row_.cell.callers; ++i) {
        flows_.push_back(make_flow(view, settings_, i));
        flows_.back()->take_sizes();
      }
    }
    if (const Result<> cycled = Load(fleet_.loop(), flows_).run_cycles(row_.cell.callers); !cycled)
      return cycled;
    row_.sizes = flows_.front()->sizes();
    const std::lock_guard lock(fleet_.loop().mutex());
    for (uint64_t i = 0; i < row_.cell.callers; ++i)
      echo_flows_.push_back(
          make_echo_flow(fleet_.peer(i), row_.cell.api, row_.cell.batch, row_.sizes));
    return {};
  }

  LoadPlan load_plan(uint64_t run, pid_t server) const {
    LoadPlan plan;
    plan.warm_up_seconds = plan_.warm_up_seconds;
    plan.seconds = plan_.seconds;
    plan.cycles_per_second = row_.cycles_per_second;
    plan.seed = plan_.seed + run;
    plan.server = server;
    return plan;
  }

  Result<Measure> run_berth(uint64_t run) {
    auto measure = Load(fleet_.loop(), flows_).run(load_plan(run, fleet_.berthd().pid()));
    if (!measure) return measure;
    if (row_.cell.workload == Workload::kStore)
      if (const Result<> evicted = fleet_.evict_stored(); !evicted)
        return tl::unexpected(evicted.error());
    return measure;
  }

  // An open loop at a share of saturation first finds out where that is.
  Result<> set_rate() {
    if (!plan_.is_open()) return {};
    if (plan_.rate > 0) {
      row_.cycles_per_second = plan_.rate;
      return {};
    }
    std::vector<double> rates;
    for (uint64_t i = 0; i < 3; ++i) {
      const Result<Measure> closed = run_berth(i);
      if (!closed) return tl::unexpected(closed.error());
      rates.push_back(closed->cycles_per_second());
    }
    row_.cycles_per_second = plan_.load * spread_of(rates).median;
    return {};
  }

  Result<Round> run_round(uint64_t run) {
    Round round;
    auto echo = Load(fleet_.loop(), echo_flows_).run(load_plan(run, fleet_.echo().pid()));
    if (!echo) return tl::unexpected(echo.error());
    round.echo = std::move(*echo);
    auto berth = run_berth(run);
    if (!berth) return tl::unexpected(berth.error());
    round.berth = std::move(*berth);
    round.core_items_per_second =
        core_.items_per_second(row_.cell.workload, row_.cell.batch, kCoreSeconds);
    round.copies_per_second = copies_per_second(row_.sizes, kCopySeconds);
    if (facts_.durability == "sync" && row_.cell.workload == Workload::kStore) {
      uint64_t bytes = 0;
      for (const MessageSizes& size : row_.sizes) bytes += size.request_bytes;
      const auto syncs = syncs_per_second(fleet_.folder(), bytes / row_.sizes.size(), kSyncSeconds);
      if (!syncs) return tl::unexpected(syncs.error());
      round.syncs_per_second = *syncs;
    }
    return round;
  }

  Fleet& fleet_;
  CoreFloor& core_;
  const Plan& plan_;
  const FleetFacts& facts_;
  FlowSettings settings_;
  Row row_;
  Flows flows_;
  Flows echo_flows_;
};

Result<FleetResult> run_fleet(const Plan& plan, FleetResult result, CoreFloor& core,
                              const SuiteListener& listener) {
  FleetSettings settings;
  settings.transport = result.facts.transport;
  settings.durability = result.facts.durability;
  settings.population = result.facts.population;
  settings.members = plan.members;
  settings.directory = plan.directory;
  const auto fleet = Fleet::start(settings);
  if (!fleet) return tl::unexpected(fleet.error());
  result.facts.resident_bytes_per_object = (*fleet)->resident_bytes_per_object();
  result.facts.fill_seconds = (*fleet)->fill_seconds();
  listener.on_fleet(result.facts);
  for (const Cell& cell : plan.cells) {
    Result<Row> row = CellRun(**fleet, core, plan, result.facts, cell).run(listener);
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
  for (const uint64_t population : plan.populations) {
    CoreFloor core(population);
    for (const Transport transport : plan.transports)
      for (const std::string& durability : plan.durabilities) {
        FleetResult fleet;
        fleet.facts.transport = transport;
        fleet.facts.durability = durability;
        fleet.facts.population = population;
        Result<FleetResult> result = run_fleet(plan, std::move(fleet), core, listener);
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
