// The parts of a result file that every program of the bench writes alike: a figure with its
// spread, and the machine.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tests/bench/rpc/process_facts.h"
#include "tests/bench/rpc/statistics.h"

namespace berth::bench {

// To four digits, which are more than two runs ever agree on. What is no number: zero.
double rounded(double value);

nlohmann::ordered_json json_of(const Spread& spread);
nlohmann::ordered_json json_of(const MachineFacts& machine);

}  // namespace berth::bench
