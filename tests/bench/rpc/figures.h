// The figures of a row, by name: the one list that table and JSON are made of. Each is the median
// over the rounds, with its spread; ratios are taken within their rounds.
#pragma once

#include <optional>

#include "tests/bench/rpc/suite.h"

namespace berth::bench {

// Of one side of the rounds: the median over the rounds of each.
struct Side {
  Spread items_per_second;
  Spread p50_us, p90_us, p99_us, p999_us, max_us;
  Spread server_cpu_us_per_item;
  Spread failures;
};

// Figure by floor, within each round.
struct Ratios {
  Spread items_of_echo;  // items per second
  Spread p50_of_echo;    // latency: above one is slower
  Spread p99_of_echo;
  Spread p999_of_echo;
  Spread cpu_of_echo;  // server CPU for each item
  Spread items_of_core;
  Spread items_of_copies;
  std::optional<Spread> calls_of_syncs;  // calls per second of all callers, by what syncs allow
};

// The same work while something happened, by the undisturbed run of the same round.
struct DisturbedFigures {
  During during = During::kNothing;
  Side berth;
  Spread items_of_undisturbed;
  Spread p50_of_undisturbed, p99_of_undisturbed, p999_of_undisturbed;
  std::map<std::string, Spread> event;
};

struct Figures {
  Side berth;
  Side echo;
  Ratios ratios;
  std::vector<DisturbedFigures> disturbed;
};

Figures figures_of(const Row& row);

}  // namespace berth::bench
