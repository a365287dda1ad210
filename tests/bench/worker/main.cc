// berth-bench-worker: what an engine on a worker's host gets, of real processes: berthd, a
// berth-worker with a CPU pool, the client library here. See tests/bench/README.md.
// Exit codes: 0 measured; 1 a call failed or was refused, or wrong bytes; 2 wrong use.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "common/log.h"
#include "common/small_file.h"
#include "common/version.h"
#include "tests/bench/rpc/echo_service.h"
#include "tests/bench/rpc/json_figures.h"
#include "tests/bench/worker/worker_bench.h"

namespace berth::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  uint64_t rounds = 9;
  double seconds = 0.5;
  uint64_t objects = 128;
  std::vector<uint64_t> batches{1, 16, 128};
  bool json = false;
  std::string output;
  std::vector<std::string> echo_addresses;
};

struct Results {
  std::vector<BytesRow> bytes;
  std::vector<LatencyRow> latencies;
};

Result<Results> measure(const Options& options) {
  // Room for a round and for what the eviction policy keeps free.
  auto rig = EngineRig::start(2 * options.objects);
  if (!rig) return tl::unexpected(rig.error());
  Results results;
  auto bytes = measure_bytes(*rig, options.objects, options.batches, options.rounds);
  if (!bytes) return tl::unexpected(bytes.error());
  auto latencies = measure_latency(*rig, options.batches, options.rounds, options.seconds);
  if (!latencies) return tl::unexpected(latencies.error());
  return Results{std::move(*bytes), std::move(*latencies)};
}

std::string with_spread(const Spread& spread) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f [%.2f-%.2f]", spread.median, spread.low, spread.high);
  return text;
}

void print(const Results& results) {
  std::printf("%-6s %5s │ %7s %-20s %-20s %9s %12s\n", "1 MiB", "batch", "GiB/s", "of memcpy",
              "copied by memcpy", "calls us", "first touch");
  for (const BytesRow& row : results.bytes)
    std::printf("%-6s %5llu │ %7.2f %-20s %-20s %9.0f %12.2f\n", row.what.c_str(),
                static_cast<unsigned long long>(row.batch), row.gib_per_second.median,
                with_spread(row.of_memcpy).c_str(), with_spread(row.of_memcpy_with_memcpy).c_str(),
                row.calls_us.median, row.first_touch_of_memcpy);
  std::printf("\n%-6s %5s │ %7s %7s %-20s %7s │ %7s %-20s\n", "spans", "batch", "p50 us", "p99",
              "of echo", "echo us", "release", "cycle of two echoes");
  for (const LatencyRow& row : results.latencies)
    std::printf("%-6s %5llu │ %7.0f %7.0f %-20s %7.0f │ %7.0f %-20s\n", "load",
                static_cast<unsigned long long>(row.batch), row.load_us.median,
                row.load_p99_us.median, with_spread(row.load_of_echo).c_str(), row.echo_us.median,
                row.release_us.median, with_spread(row.cycle_of_echoes).c_str());
}

std::string to_json(const Options& options, const MachineFacts& machine, const Results& results) {
  Json json;
  json["berth"] = kVersion;
  json["machine"] = json_of(machine);
  json["plan"] = {{"rounds", options.rounds},
                  {"seconds", options.seconds},
                  {"objects", options.objects},
                  {"object_bytes", kObjectBytes}};
  json["bytes"] = Json::array();
  for (const BytesRow& row : results.bytes)
    json["bytes"].push_back({{"what", row.what},
                             {"batch", row.batch},
                             {"gib_per_second", json_of(row.gib_per_second)},
                             {"of_memcpy", json_of(row.of_memcpy)},
                             {"of_memcpy_with_memcpy", json_of(row.of_memcpy_with_memcpy)},
                             {"calls_us", json_of(row.calls_us)},
                             {"first_touch_of_memcpy", rounded(row.first_touch_of_memcpy)}});
  json["latencies"] = Json::array();
  for (const LatencyRow& row : results.latencies)
    json["latencies"].push_back({{"batch", row.batch},
                                 {"load_us", json_of(row.load_us)},
                                 {"load_p99_us", json_of(row.load_p99_us)},
                                 {"load_of_echo", json_of(row.load_of_echo)},
                                 {"echo_us", json_of(row.echo_us)},
                                 {"release_us", json_of(row.release_us)},
                                 {"cycle_of_two_echoes", json_of(row.cycle_of_echoes)}});
  return json.dump(1) + "\n";
}

int fail(const Error& error) {
  std::fprintf(stderr, "berth-bench-worker: %s\n", error.message.c_str());
  return 1;
}

int run(const Options& options) {
  const MachineFacts machine = machine_facts();
  const auto results = measure(options);
  if (!results) return fail(results.error());
  const std::string json = to_json(options, machine, *results);
  if (options.json)
    std::fputs(json.c_str(), stdout);
  else
    print(*results);
  if (!options.output.empty())
    if (const auto written = write_small_file(options.output, json); !written)
      return fail(written.error());
  return 0;
}

int main_of(int argc, char** argv) {
  Options options;
  CLI::App app{
      "Measures what an engine gets from a worker: 1 MiB objects through a CPU pool beside plain "
      "copies of the same bytes, and the latency of a load beside an echo over a unix socket.",
      "berth-bench-worker"};
  app.set_version_flag("--version", std::string(kVersion));
  app.add_option("--runs", options.rounds, "Rounds of floor and figure (default 9)")
      ->check(CLI::Range(1, 1000))
      ->option_text("N");
  app.add_option("--seconds", options.seconds, "Of each side of a latency round (default 0.5)")
      ->check(CLI::Range(0.01, 3600.0))
      ->option_text("SECONDS");
  app.add_option("--objects", options.objects, "Stored in one round (default 128: 128 MiB)")
      ->check(CLI::Range(1, 4096))
      ->option_text("N");
  app.add_option("--batch", options.batches, "Objects of one call (default 1,16,128)")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->option_text("LIST");
  app.add_flag("--json", options.json, "Print the figures as one JSON object");
  app.add_option("--output", options.output, "Write them to this file, too")->option_text("FILE");
  app.add_option("--echo-server", options.echo_addresses)->group("");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  log::set_level(log::Level::kError);
  if (!options.echo_addresses.empty()) return run_echo_server(options.echo_addresses);
  for (const uint64_t batch : options.batches)
    if (batch > options.objects) {
      std::fprintf(stderr, "berth-bench-worker: --batch %llu: accepted are 1 to --objects, %llu\n",
                   static_cast<unsigned long long>(batch),
                   static_cast<unsigned long long>(options.objects));
      return 2;
    }
  return run(options);
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
