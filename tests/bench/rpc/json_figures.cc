#include "tests/bench/rpc/json_figures.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace berth::bench {

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 4 - std::ceil(std::log10(std::fabs(value))));
  return std::round(value * scale) / scale;
}

nlohmann::ordered_json json_of(const Spread& spread) {
  return {{"median", rounded(spread.median)},
          {"low", rounded(spread.low)},
          {"high", rounded(spread.high)}};
}

nlohmann::ordered_json json_of(const MachineFacts& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"kernel", machine.kernel},
          {"memory_bytes", machine.memory_bytes},
          {"load_average_at_start", rounded(machine.load_average)},
          {"compiler", __VERSION__}};
}

}  // namespace berth::bench
