// Figures of repeated runs: the median with what lies around it, and ratios that are taken run by
// run, so that a machine that slows down for a while slows both sides of each ratio.
#pragma once

#include <span>
#include <vector>

namespace berth::bench {

// All zero without values. Of an even number of values the median is the mean of the middle two.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};
Spread spread_of(std::vector<double> values);

// values[i] / floors[i]; runs whose floor is zero are left out. Both have the same length.
Spread ratios_of(std::span<const double> values, std::span<const double> floors);

}  // namespace berth::bench
