// The figures as text: a table for people, row by row as they come, and one JSON object for
// compare.py. docs say what each figure means: tests/bench/README.md.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/rpc/process_facts.h"
#include "tests/bench/rpc/suite.h"

namespace berth::bench {

std::string fleet_header(const FleetFacts& facts);
std::string table_row(const FleetFacts& facts, const Row& row);

std::string to_json(const Plan& plan, const MachineFacts& machine,
                    const std::vector<FleetResult>& results);

}  // namespace berth::bench
