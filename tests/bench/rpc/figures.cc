#include "tests/bench/rpc/figures.h"

namespace berth::bench {
namespace {

double micros(uint64_t nanos) { return static_cast<double>(nanos) / 1e3; }

Side side_of(const Row& row, Measure Round::*side) {
  const auto over = [&](auto figure) {
    return over_rounds(row, [&](const Round& round) { return figure(round.*side); });
  };
  const auto percentile = [&](double percent) {
    return over([percent](const Measure& m) { return micros(m.latency.percentile(percent)); });
  };
  Side figures;
  figures.items_per_second = over([](const Measure& m) { return m.items_per_second(); });
  figures.p50_us = percentile(50);
  figures.p90_us = percentile(90);
  figures.p99_us = percentile(99);
  figures.p999_us = percentile(99.9);
  figures.max_us = over([](const Measure& m) { return micros(m.latency.max()); });
  figures.server_cpu_us_per_item =
      over([](const Measure& m) { return m.server_cpu_per_item() * 1e6; });
  figures.failures = over([](const Measure& m) { return static_cast<double>(m.failures); });
  return figures;
}

// figure(round) by floor(round), for each round.
template <class Figure, class Floor>
Spread ratio(const Row& row, Figure figure, Floor floor) {
  std::vector<double> figures;
  std::vector<double> floors;
  for (const Round& round : row.rounds) {
    figures.push_back(figure(round));
    floors.push_back(floor(round));
  }
  return ratios_of(figures, floors);
}

template <class Figure>
Spread of_echo(const Row& row, Figure figure) {
  return ratio(
      row, [&](const Round& round) { return figure(round.berth); },
      [&](const Round& round) { return figure(round.echo); });
}

Spread percentile_of_echo(const Row& row, double percent) {
  return of_echo(row, [percent](const Measure& measure) {
    return static_cast<double>(measure.latency.percentile(percent));
  });
}

}  // namespace

Figures figures_of(const Row& row) {
  const auto berth_items = [](const Round& round) { return round.berth.items_per_second(); };
  const auto batch = static_cast<double>(row.cell.batch);
  const auto callers = static_cast<double>(row.cell.callers);
  const auto calls = static_cast<double>(row.sizes.size());
  Figures figures;
  figures.berth = side_of(row, &Round::berth);
  figures.echo = side_of(row, &Round::echo);
  Ratios& ratios = figures.ratios;
  ratios.items_of_echo = of_echo(row, [](const Measure& m) { return m.items_per_second(); });
  ratios.p50_of_echo = percentile_of_echo(row, 50);
  ratios.p99_of_echo = percentile_of_echo(row, 99);
  ratios.p999_of_echo = percentile_of_echo(row, 99.9);
  ratios.cpu_of_echo = of_echo(row, [](const Measure& m) { return m.server_cpu_per_item(); });
  ratios.items_of_core =
      ratio(row, berth_items, [](const Round& round) { return round.core_items_per_second; });
  ratios.items_of_copies = ratio(
      row, berth_items, [batch](const Round& round) { return round.copies_per_second * batch; });
  // One fsync may serve a call of each caller.
  if (row.rounds.front().syncs_per_second > 0)
    ratios.calls_of_syncs = ratio(
        row, [calls](const Round& round) { return round.berth.cycles_per_second() * calls; },
        [callers](const Round& round) { return round.syncs_per_second * callers; });
  return figures;
}

}  // namespace berth::bench
