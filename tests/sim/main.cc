// berth-sim: runs the simulated world for one seed or many, and prints the command that replays
// what failed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/clock.h"
#include "tests/sim/world.h"

namespace berth::sim {
namespace {

struct Arguments {
  uint64_t seed = 1;
  std::string seeds;
  uint64_t minutes = 0;
  uint64_t steps = 300;
  std::string plant;
  bool trace = false;
  bool list_plants = false;
  bool json = false;
};

struct Range {
  uint64_t first = 0;
  uint64_t last = 0;
};

// "A..B", both included.
bool parse_range(const std::string& text, Range& range) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos) return false;
  char* end = nullptr;
  const std::string first = text.substr(0, dots);
  const std::string last = text.substr(dots + 2);
  if (first.empty() || last.empty() || first[0] == '-' || last[0] == '-') return false;
  range.first = std::strtoull(first.c_str(), &end, 10);
  if (*end != '\0') return false;
  range.last = std::strtoull(last.c_str(), &end, 10);
  return *end == '\0' && range.first <= range.last;
}

std::string in_quotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string replay_command(const Arguments& arguments, uint64_t seed) {
  std::string text = "berth-sim --seed " + std::to_string(seed);
  if (arguments.steps != Arguments{}.steps) text += " --steps " + std::to_string(arguments.steps);
  if (!arguments.plant.empty()) text += " --plant " + arguments.plant;
  return text + " --trace";
}

int list_plants() {
  for (const PlantRow& row : kPlants)
    std::printf("%-30s %s\n", std::string(row.name).c_str(), std::string(row.what).c_str());
  return 0;
}

int simulate(const Arguments& arguments, Range range, Plant plant) {
  // Every tenth seed of a range runs twice, a single one always: the digests must agree.
  constexpr uint64_t kTwiceEvery = 10;
  const SteadyClock clock;
  const int64_t started = clock.monotonic_millis();
  const int64_t until = started + static_cast<int64_t>(arguments.minutes) * 60'000;
  uint64_t seeds = 0;
  uint64_t commits = 0;
  uint64_t simulated = 0;
  uint64_t fenced_readers_saw_change = 0;
  uint64_t digest = 0;
  std::string failure;
  uint64_t seed = range.first;
  for (; seed <= range.last; ++seed) {
    if (arguments.minutes > 0 && clock.monotonic_millis() >= until) break;
    const RunOptions options{seed, arguments.steps, arguments.trace, plant};
    const bool twice = range.first == range.last || seed % kTwiceEvery == 0;
    const RunResult result = twice ? run_twice(options) : run(options);
    ++seeds;
    commits += result.commits;
    simulated += result.simulated_millis;
    fenced_readers_saw_change += result.fenced_readers_saw_change;
    digest = mix(digest, result.digest);
    failure = result.failure;
    if (!failure.empty()) break;
  }
  const double took = static_cast<double>(clock.monotonic_millis() - started) / 1000;
  if (arguments.json) {
    std::printf(
        "{\"ok\": %s, \"seeds\": %llu, \"commits\": %llu, \"simulated_seconds\": %llu, "
        "\"seconds\": %.3f, \"fenced_reader_saw_change\": %llu, \"digest\": \"%016llx\"",
        failure.empty() ? "true" : "false", static_cast<unsigned long long>(seeds),
        static_cast<unsigned long long>(commits), static_cast<unsigned long long>(simulated / 1000),
        took, static_cast<unsigned long long>(fenced_readers_saw_change),
        static_cast<unsigned long long>(digest));
    if (!failure.empty())
      std::printf(", \"failed_seed\": %llu, \"failure\": %s, \"replay\": %s",
                  static_cast<unsigned long long>(seed), in_quotes(failure).c_str(),
                  in_quotes(replay_command(arguments, seed)).c_str());
    std::printf("}\n");
  } else if (failure.empty()) {
    std::printf(
        "%llu seeds passed in %.1f s (%.0f a second): %llu commits, %llu simulated seconds, "
        "fenced_reader_saw_change %llu, digest %016llx\n",
        static_cast<unsigned long long>(seeds), took, static_cast<double>(seeds) / took,
        static_cast<unsigned long long>(commits), static_cast<unsigned long long>(simulated / 1000),
        static_cast<unsigned long long>(fenced_readers_saw_change),
        static_cast<unsigned long long>(digest));
  } else {
    std::printf("seed %llu failed: %s\nreplay: %s\n", static_cast<unsigned long long>(seed),
                failure.c_str(), replay_command(arguments, seed).c_str());
  }
  return failure.empty() ? 0 : 1;
}

int main_with(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Simulates Berth under faults; one seed decides everything."};
  app.add_option("--seed", arguments.seed, "The one seed to run, twice; its digest is printed");
  app.add_option("--seeds", arguments.seeds, "A range of seeds, as 1..1000");
  app.add_option("--minutes", arguments.minutes,
                 "Stop after so many minutes; without --seeds, seeds go on from --seed");
  app.add_option("--steps", arguments.steps, "Random deeds of one seed")->capture_default_str();
  app.add_option("--plant", arguments.plant, "Plant this bug (see --list-plants)");
  app.add_flag("--trace", arguments.trace, "Print what happens");
  app.add_flag("--list-plants", arguments.list_plants, "Print the bugs that can be planted");
  app.add_flag("--json", arguments.json, "Print the result as one JSON object");
  CLI11_PARSE(app, argc, argv);
  if (arguments.list_plants) return list_plants();

  Plant plant = Plant::kNone;
  if (!arguments.plant.empty()) {
    const auto named = plant_named(arguments.plant);
    if (!named) {
      std::fprintf(stderr, "--plant %s: no such bug; --list-plants prints them\n",
                   arguments.plant.c_str());
      return 2;
    }
    plant = *named;
  }
  Range range{arguments.seed, arguments.minutes > 0 ? UINT64_MAX : arguments.seed};
  if (!arguments.seeds.empty() && !parse_range(arguments.seeds, range)) {
    std::fprintf(stderr, "--seeds %s: accepted: FIRST..LAST, as 1..1000\n",
                 arguments.seeds.c_str());
    return 2;
  }
  return simulate(arguments, range, plant);
}

}  // namespace
}  // namespace berth::sim

int main(int argc, char** argv) { return berth::sim::main_with(argc, argv); }
