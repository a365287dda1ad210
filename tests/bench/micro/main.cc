// berth-bench-micro: what one item costs within berthd's and the worker's cores, each beside the
// plainest thing that would do, in turn in the same run. Workloads: *_work.cc in this folder.
//
//   berth-bench-micro [--benchmark_filter=REGEX] [--benchmark_min_time=SECONDS] ...
//   berth-bench-micro --list           cases that instructions.py counts
//   berth-bench-micro --count NAME     a fixed number of rounds of one of them, for callgrind,
//   which
//                                      collects inside of berth_measured; prints the items done
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "tests/bench/micro/work.h"

// Named by instructions.py. Never inlined, and C so that its name is the symbol.
extern "C" __attribute__((noinline)) uint64_t berth_measured(const berth::bench::Work& work) {
  const uint64_t items = work.run();
  berth::bench::keep(items);  // not a tail call: what is collected ends where run() has returned
  return items;
}

namespace berth::bench {

Cases all_cases() {
  Cases cases;
  add_apply_cases(cases);
  add_index_cases(cases);
  add_codec_cases(cases);
  add_ledger_cases(cases);
  add_extent_cases(cases);
  add_policy_cases(cases);
  return cases;
}

namespace {

constexpr uint64_t kCountedRounds = 8;
constexpr uint64_t kWarmingRounds = 2;

struct Measured {
  uint64_t items = 0;
  double seconds = 0;
  double nanos_per_item() const { return seconds * 1e9 / static_cast<double>(items); }
};

// Of this thread alone: whoever else wants the core makes no figure worse, but for the caches.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double measure(const Work& work, Measured& sum) {
  work.prepare();
  const double start = cpu_seconds();
  const uint64_t items = berth_measured(work);
  const double seconds = cpu_seconds() - start;
  work.finish();
  sum.items += items;
  sum.seconds += seconds;
  return seconds;
}

void run_case(benchmark::State& state, const Case& which) {
  const Work work = which.make();
  const Work baseline = which.make_baseline();
  Measured ours;
  Measured plain;
  Measured warming;
  for (uint64_t round = 0; round < kWarmingRounds; ++round) {
    measure(work, warming);
    measure(baseline, warming);
  }
  for ([[maybe_unused]] auto round : state) {
    state.SetIterationTime(measure(work, ours));
    measure(baseline, plain);
  }
  state.SetItemsProcessed(static_cast<int64_t>(ours.items));
  state.SetLabel(which.baseline);
  state.counters["ns/item"] = ours.nanos_per_item();
  state.counters["baseline"] = plain.nanos_per_item();
  state.counters["ratio"] = ours.nanos_per_item() / plain.nanos_per_item();
}

int count(const Cases& cases, std::string_view name) {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& which) {
    return which.is_counted && which.name == name;
  });
  if (found == cases.end()) {
    std::fprintf(stderr, "berth-bench-micro: --count takes a name that --list prints\n");
    return 2;
  }
  const Work work = found->make();
  for (uint64_t round = 0; round < kWarmingRounds; ++round) {
    work.prepare();
    work.run();
    work.finish();
  }
  Measured all;
  for (uint64_t round = 0; round < kCountedRounds; ++round) measure(work, all);
  std::printf("%llu\n", static_cast<unsigned long long>(all.items));
  return 0;
}

int list(const Cases& cases) {
  for (const Case& which : cases)
    if (which.is_counted) std::printf("%s\n", which.name.c_str());
  return 0;
}

int main_of(int argc, char** argv) {
  const Cases cases = all_cases();
  if (argc == 2 && std::string_view(argv[1]) == "--list") return list(cases);
  if (argc == 3 && std::string_view(argv[1]) == "--count") return count(cases, argv[2]);
  for (const Case& which : cases)
    benchmark::RegisterBenchmark(which.name.c_str(), [&](benchmark::State& state) {
      run_case(state, which);
    })->UseManualTime();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) { return berth::bench::main_of(argc, argv); }
