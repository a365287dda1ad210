#include "tests/bench/rpc/figures.h"

namespace berth::bench {
namespace {

double micros(uint64_t nanos) { return static_cast<double>(nanos) / 1e3; }

// `side` gives a round's measure.
template <class Which>
Side side_of(const Row& row, Which side) {
  const auto over = [&](auto figure) {
    return over_rounds(row, [&](const Round& round) { return figure(side(round)); });
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

DisturbedFigures disturbed_figures(const Row& row, size_t index) {
  const auto run = [index](const Round& round) -> auto& { return round.disturbed[index]; };
  const auto measure = [run](const Round& round) -> auto& { return run(round).berth; };
  const auto by_undisturbed = [&](auto figure) {
    return ratio(
        row, [&](const Round& round) { return figure(measure(round)); },
        [&](const Round& round) { return figure(round.berth); });
  };
  const auto percentile = [&](double percent) {
    return by_undisturbed(
        [percent](const Measure& m) { return static_cast<double>(m.latency.percentile(percent)); });
  };
  DisturbedFigures figures;
  figures.during = run(row.rounds.front()).during;
  figures.berth = side_of(row, measure);
  figures.items_of_undisturbed =
      by_undisturbed([](const Measure& m) { return m.items_per_second(); });
  figures.p50_of_undisturbed = percentile(50);
  figures.p99_of_undisturbed = percentile(99);
  figures.p999_of_undisturbed = percentile(99.9);
  for (const auto& fact : run(row.rounds.front()).event)
    figures.event[fact.first] =
        over_rounds(row, [&](const Round& round) { return run(round).event.at(fact.first); });
  return figures;
}

Spread percentile_of_echo(const Row& row, double percent) {
  return of_echo(row, [percent](const Measure& measure) {
    return static_cast<double>(measure.latency.percentile(percent));
  });
}

}  // namespace

Figures figures_of(const Row& row) {
  const auto berth_items = [](const Round& round) { return round.berth.items_per_second(); };
  const double items = row.items_per_cycle;
  const auto callers = static_cast<double>(row.cell.callers);
  const double calls = row.calls_per_cycle;
  Figures figures;
  figures.berth = side_of(
      row, [](const Round& round) -> auto& { return round.berth; });
  figures.echo = side_of(
      row, [](const Round& round) -> auto& { return round.echo; });
  Ratios& ratios = figures.ratios;
  ratios.items_of_echo = of_echo(row, [](const Measure& m) { return m.items_per_second(); });
  ratios.p50_of_echo = percentile_of_echo(row, 50);
  ratios.p99_of_echo = percentile_of_echo(row, 99);
  ratios.p999_of_echo = percentile_of_echo(row, 99.9);
  ratios.cpu_of_echo = of_echo(row, [](const Measure& m) { return m.server_cpu_per_item(); });
  ratios.items_of_core =
      ratio(row, berth_items, [](const Round& round) { return round.core_items_per_second; });
  ratios.items_of_copies = ratio(
      row, berth_items, [items](const Round& round) { return round.copies_per_second * items; });
  // One fsync may serve a call of each caller.
  if (row.rounds.front().syncs_per_second > 0)
    ratios.calls_of_syncs = ratio(
        row, [calls](const Round& round) { return round.berth.cycles_per_second() * calls; },
        [callers](const Round& round) { return round.syncs_per_second * callers; });
  for (size_t i = 0; i < row.rounds.front().disturbed.size(); ++i)
    figures.disturbed.push_back(disturbed_figures(row, i));
  return figures;
}

}  // namespace berth::bench
