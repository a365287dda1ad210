// berth-bench: the benchmark of berthd over its protocol. See tests/bench/README.md.
// Exit codes: 0 measured; 1 a call failed or was refused, a wrong answer, or stopped; 2 wrong use.
#include <cstdio>
#include <string>

#include "common/log.h"
#include "common/signals.h"
#include "common/small_file.h"
#include "tests/bench/rpc/echo_service.h"
#include "tests/bench/rpc/options.h"
#include "tests/bench/rpc/report.h"

namespace {

constexpr double kQuietLoad = 0.5;

int fail(const berth::Error& error) {
  std::fprintf(stderr, "berth-bench: %s\n", error.message.c_str());
  return 1;
}

void show(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace berth;
  const bench::ParsedOptions parsed = bench::parse_options(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  const bench::Options& options = parsed.options;
  log::set_level(log::Level::kError);
  if (!options.echo_addresses.empty()) return bench::run_echo_server(options.echo_addresses);
  std::fprintf(stderr, "berth-bench: %s\n", bench::summary_of(options.plan).c_str());
  if (options.is_dry_run) return 0;

  // Blocked, so that the servers that we started are stopped as well.
  const auto signals = block_stop_signals();
  if (!signals) return fail(signals.error());
  const bench::MachineFacts machine = bench::machine_facts();
  if (machine.load_average > kQuietLoad)
    std::fprintf(stderr, "berth-bench: others use this machine (load average %.1f): provisional\n",
                 machine.load_average);
  bench::SuiteListener listener;
  listener.is_stopped = [&] { return take_stop_signal(signals->get()) != 0; };
  listener.on_fleet = [&](const bench::FleetFacts& facts) {
    if (!options.json) show(bench::fleet_header(facts));
  };
  listener.on_row = [&](const bench::FleetFacts& facts, const bench::Row& row) {
    if (!options.json) show(bench::table_row(facts, row));
  };
  const auto results = bench::run_suite(options.plan, listener);
  if (!results) return fail(results.error());
  const std::string json = bench::to_json(options.plan, machine, *results) + "\n";
  if (options.json) show(json);
  if (!options.output.empty())
    if (const auto written = write_small_file(options.output, json); !written)
      return fail(written.error());
  return 0;
}
