// A replay's figures for people and for programs. The JSON keys are an interface: tests and
// dashboards read them, so they are added to and never renamed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "worker/replay/counts.h"
#include "worker/replay/fleet_figures.h"

namespace berth::replay {

struct ReplayResult {
  Counts counts;
  double seconds = 0;
  uint32_t engines = 1;
  uint32_t engines_lost = 0;  // processes that ended without a report
  uint64_t block_bytes = 0;
  std::optional<FleetFigures> fleet;  // of a local one

  // No wrong byte, no error, no engine lost, no broken invariant. Skips and misses are ordinary.
  bool is_clean() const;
};

// The smallest sample that at least `percent` percent of all samples do not exceed; zero without
// samples.
uint32_t percentile(std::vector<uint32_t> samples, double percent);

std::string to_json(const ReplayResult& result);
std::string to_text(const ReplayResult& result);

// One engine process to the one that started it.
std::string counts_to_json(const Counts& counts);
Result<Counts> counts_from_json(const std::string& text);

}  // namespace berth::replay
