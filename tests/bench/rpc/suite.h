// Carries a plan out: for each fleet, for each cell, rounds of floor and figure in turn.
//
//   round:  echo │ berth │ berth during an event ... │ core │ copies │ fsync     five times, or
//   more
//
// What a run stored is evicted after it.
//
// A ratio is taken within its round, so that what else the machine does meets both sides.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/rpc/load.h"
#include "tests/bench/rpc/plan.h"
#include "tests/bench/rpc/statistics.h"

namespace berth::bench {

struct DisturbedRun {
  During during = During::kNothing;
  Measure berth;
  std::map<std::string, double> event;  // what it took and did
};

struct Round {
  Measure berth;
  Measure echo;
  std::vector<DisturbedRun> disturbed;  // in the plan's order
  double core_items_per_second = 0;
  double copies_per_second = 0;  // of a cycle's messages
  double syncs_per_second = 0;   // zero: nothing of this cell is fsynced before its answer
};

struct FleetFacts {
  Transport transport = Transport::kTcp;
  std::string durability;
  uint64_t population = 0;
  double resident_bytes_per_object = 0;
  double fill_seconds = 0;
};

struct Row {
  Cell cell;
  // Of the calls of a cycle; of a trace, where cycles differ, their means put together.
  std::vector<MessageSizes> sizes;
  double calls_per_cycle = 0;
  double items_per_cycle = 0;
  double cycles_per_second = 0;  // meant, of an open loop; zero: closed
  std::vector<Round> rounds;
};

struct FleetResult {
  FleetFacts facts;
  std::vector<Row> rows;
};

// Told as soon as there is something to show.
struct SuiteListener {
  std::function<void(const FleetFacts&)> on_fleet;
  std::function<void(const FleetFacts&, const Row&)> on_row;
  // Asked between rounds: whether to give up.
  std::function<bool()> is_stopped;
};

// Errors: of the first step that failed; kCancelled when it was stopped.
Result<std::vector<FleetResult>> run_suite(const Plan& plan, const SuiteListener& listener);

// A figure of every round.
Spread over_rounds(const Row& row, const std::function<double(const Round&)>& figure);

}  // namespace berth::bench
