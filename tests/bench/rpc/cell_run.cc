#include "tests/bench/rpc/cell_run.h"

#include <algorithm>
#include <future>
#include <memory>

#include "tests/bench/rpc/floors.h"

namespace berth::bench {
namespace {

constexpr double kCoreSeconds = 0.05;
constexpr double kCopySeconds = 0.01;
constexpr double kSyncSeconds = 0.1;

// Enough cycles of a trace to play the echo of it.
constexpr uint64_t kRecordedCycles = 500;

bool stores(Workload workload) {
  return workload == Workload::kStore || workload == Workload::kTrace;
}

class CellRun {
 public:
  CellRun(const CellPlace& place, const Cell& cell)
      : fleet_(place.fleet),
        core_(place.core),
        trace_(place.trace),
        plan_(place.plan),
        facts_(place.facts) {
    row_.cell = cell;
    settings_.workload = cell.workload;
    settings_.api = cell.api;
    settings_.batch = cell.batch;
    settings_.seed = plan_.seed;
    settings_.trace = trace_;
    for (const During during : plan_.during)
      disturbances_.push_back(make_disturbance(
          fleet_, {.during = during, .objects = plan_.event_objects, .seed = plan_.seed}));
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
  // Some cycles, recorded, say how large the messages are.
  Result<> make_flows() {
    {
      const std::lock_guard lock(fleet_.loop().mutex());
      for (uint64_t i = 0; i < row_.cell.callers; ++i) {
        flows_.push_back(make_flow(fleet_.view(), settings_, i));
        flows_.back()->log.is_on = true;
      }
    }
    const uint64_t cycles =
        trace_ ? std::max(kRecordedCycles, row_.cell.callers) : row_.cell.callers;
    if (const Result<> cycled = Load(fleet_.loop(), flows_).run_cycles(cycles); !cycled)
      return cycled;
    const std::lock_guard lock(fleet_.loop().mutex());
    std::vector<RecordedCycle> all;
    for (const auto& flow : flows_) {
      flow->log.is_on = false;
      all.insert(all.end(), flow->recorded.begin(), flow->recorded.end());
    }
    for (uint64_t i = 0; i < row_.cell.callers; ++i) {
      // Of a trace, each begins elsewhere.
      std::rotate(all.begin(),
                  all.begin() + static_cast<std::ptrdiff_t>(all.size() / 7 + 1) %
                                    static_cast<std::ptrdiff_t>(all.size()),
                  all.end());
      echo_flows_.push_back(make_echo_flow(fleet_.peer(i), row_.cell.api, all));
    }
    describe(all);
    return {};
  }
  void describe(const std::vector<RecordedCycle>& cycles) {
    MessageSizes sum;
    const auto count = static_cast<double>(cycles.size());
    for (const RecordedCycle& cycle : cycles) {
      row_.items_per_cycle += static_cast<double>(cycle.items) / count;
      row_.calls_per_cycle += static_cast<double>(cycle.calls.size()) / count;
      for (const MessageSizes& call : cycle.calls) {
        sum.request_bytes += call.request_bytes;
        sum.answer_bytes += call.answer_bytes;
      }
    }
    row_.sizes = cycles.front().calls;
    if (trace_)
      row_.sizes = {{sum.request_bytes / cycles.size(), sum.answer_bytes / cycles.size()}};
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

  Result<Measure> run_berth(LoadPlan plan) {
    if (trace_) {
      const std::lock_guard lock(fleet_.loop().mutex());
      trace_->start_over();
    }
    return Load(fleet_.loop(), flows_).run(plan);
  }
  Result<> clean_up() {
    if (!stores(row_.cell.workload)) return {};
    return fleet_.evict_stored();
  }
  Result<Measure> run_berth(uint64_t run) {
    auto measure = run_berth(load_plan(run, fleet_.berthd().pid()));
    if (const Result<> cleaned = clean_up(); measure && !cleaned)
      return tl::unexpected(cleaned.error());
    return measure;
  }
  Result<DisturbedRun> run_disturbed(uint64_t run, size_t index) {
    Disturbance& disturbance = *disturbances_[index];
    if (const Result<> prepared = disturbance.prepare(); !prepared)
      return tl::unexpected(prepared.error());
    LoadPlan plan = load_plan(run, fleet_.berthd().pid());
    plan.tolerates_failures = disturbance.breaks_calls();
    const MeasuredWindow window{plan.warm_up_seconds, plan.warm_up_seconds + plan.seconds};
    auto happening = std::async(std::launch::async, [&] { return disturbance.happen(window); });
    auto measure = run_berth(plan);
    auto event = happening.get();
    if (!measure) return tl::unexpected(measure.error());
    if (!event) return tl::unexpected(event.error());
    if (const Result<> cleaned = clean_up(); !cleaned) return tl::unexpected(cleaned.error());
    return DisturbedRun{plan_.during[index], std::move(*measure), std::move(*event)};
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
    for (size_t i = 0; i < disturbances_.size(); ++i) {
      auto disturbed = run_disturbed(run, i);
      if (!disturbed) return tl::unexpected(disturbed.error());
      round.disturbed.push_back(std::move(*disturbed));
    }
    if (const Result<> measured = run_other_floors(round); !measured)
      return tl::unexpected(measured.error());
    return round;
  }
  Result<> run_other_floors(Round& round) {
    round.copies_per_second = copies_per_second(row_.sizes, kCopySeconds);
    if (trace_) return {};  // of calls of other kinds and sizes, one after the other
    round.core_items_per_second =
        core_.items_per_second(row_.cell.workload, row_.cell.batch, kCoreSeconds);
    if (facts_.durability != "sync" || row_.cell.workload != Workload::kStore) return {};
    uint64_t bytes = 0;
    for (const MessageSizes& size : row_.sizes) bytes += size.request_bytes;
    const auto syncs = syncs_per_second(fleet_.folder(), bytes / row_.sizes.size(), kSyncSeconds);
    if (!syncs) return tl::unexpected(syncs.error());
    round.syncs_per_second = *syncs;
    return {};
  }

  Fleet& fleet_;
  CoreFloor& core_;
  TraceSource* trace_;  // of kTrace
  const Plan& plan_;
  const FleetFacts& facts_;
  FlowSettings settings_;
  std::vector<std::unique_ptr<Disturbance>> disturbances_;
  Row row_;
  Flows flows_;
  Flows echo_flows_;
};

}  // namespace

Result<Row> run_cell(const CellPlace& place, const Cell& cell, const SuiteListener& listener) {
  return CellRun(place, cell).run(listener);
}

}  // namespace berth::bench
