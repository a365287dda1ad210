// One cell on one fleet: flows of the workload and of its echo, and rounds of both with everything
// that is measured beside them.
#pragma once

#include "tests/bench/rpc/core_floor.h"
#include "tests/bench/rpc/suite.h"

namespace berth::bench {

struct CellPlace {
  Fleet& fleet;
  CoreFloor& core;
  TraceSource* trace;  // null unless the cell is of kTrace
  const Plan& plan;
  const FleetFacts& facts;
};

// Errors: of the first run that failed; kCancelled when `listener` says so.
Result<Row> run_cell(const CellPlace& place, const Cell& cell, const SuiteListener& listener);

}  // namespace berth::bench
