#include "tests/bench/rpc/statistics.h"

#include <algorithm>

#include "common/check.h"

namespace berth::bench {

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Spread ratios_of(std::span<const double> values, std::span<const double> floors) {
  BERTH_CHECK(values.size() == floors.size(), "each run has its own floor");
  std::vector<double> ratios;
  for (size_t i = 0; i < values.size(); ++i)
    if (floors[i] != 0) ratios.push_back(values[i] / floors[i]);
  return spread_of(std::move(ratios));
}

}  // namespace berth::bench
