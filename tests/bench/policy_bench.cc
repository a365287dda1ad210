// berth-bench-policy: how many prefix hits each eviction policy gets out of a request trace, in
// pools of exact capacity, beside the best that any policy could get.
//
// Workload: the requests of a trace in order; a block is one chunk. A request hits up to its first
// missing block, then all its blocks are touched or inserted one by one (policy_simulation.h). The
// ratio is hit blocks over all blocks. The policies are the server's own code, except ARC, which is
// here for comparison. Baselines in the same run: lru, and bound = Belady's MIN.
//
// Parts of a trace: all of it; its first 60 % (of the conversation trace: what `adaptive` was tuned
// on, beside the generated ones); its last 40 % with an empty pool at the 60 % mark (cold) or with
// the pool that the first 60 % left behind (warm).
//
//   closed   share of the distance from lru to the bound that `adaptive` covers
//   lead     `adaptive` against the best of lru, s3fifo, lfu_da and arc
//
// A second table: bytes an object and nanoseconds a block (touch, insert, evict), in a pool of a
// million objects where every fourth request repeats an old one.
//
//   berth-bench-policy [--trace FILE]... [--capacity BLOCKS]... [--all-only] [--json]
//
// Without --trace: conversation_trace.jsonl and synthetic_trace.jsonl in ../shared/traces; a
// generated chat, rag and agents trace each where those are missing.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/policy/eviction.h"
#include "tests/bench/arc.h"
#include "tests/bench/policy_simulation.h"
#include "worker/replay/generate.h"
#include "worker/replay/trace.h"

namespace berth::bench {
namespace {

using policy::EvictionKind;

constexpr EvictionKind kKinds[] = {EvictionKind::kLru, EvictionKind::kS3Fifo, EvictionKind::kLfuDa,
                                   EvictionKind::kAdaptive};

struct Options {
  std::vector<std::string> traces;
  std::vector<size_t> capacities;
  bool all_only = false;
  bool json = false;
};

struct Trace {
  std::string name;
  std::vector<replay::Request> requests;
};

struct Part {
  const char* name;
  size_t begin;  // played from here on, with an empty pool
  size_t end;
  size_t counted_from;
};

struct Row {
  std::string trace;
  std::string part;
  size_t capacity = 0;
  double lru = 0, s3fifo = 0, lfu_da = 0, arc = 0, adaptive = 0, bound = 0;

  double best() const { return std::max(std::max(lru, s3fifo), std::max(lfu_da, arc)); }
  double closed() const { return bound > lru ? (adaptive - lru) / (bound - lru) : 0; }
  double lead() const { return best() > 0 ? adaptive / best() - 1 : 0; }
};

std::vector<Part> parts_of(const Trace& trace, bool all_only) {
  const size_t n = trace.requests.size();
  const size_t cut = n * 6 / 10;
  if (all_only) return {{"all", 0, n, 0}};
  return {{"all", 0, n, 0},
          {"first 60 %", 0, cut, 0},
          {"last 40 % cold", cut, n, cut},
          {"last 40 % warm", 0, n, cut}};
}

Row measure(const Trace& trace, const Part& part, size_t capacity) {
  const Requests played = Requests(trace.requests).subspan(part.begin, part.end - part.begin);
  const size_t counted_from = part.counted_from - part.begin;
  const auto ratio_of = [&](EvictionKind kind) {
    policy::SlotStates slots;
    const auto policy = policy::make_eviction_policy(kind, slots);
    return simulate(played, capacity, *policy, counted_from).ratio();
  };
  Row row{trace.name, part.name, capacity};
  row.lru = ratio_of(EvictionKind::kLru);
  row.s3fifo = ratio_of(EvictionKind::kS3Fifo);
  row.lfu_da = ratio_of(EvictionKind::kLfuDa);
  row.adaptive = ratio_of(EvictionKind::kAdaptive);
  Arc arc(capacity);
  row.arc = simulate(played, capacity, arc, counted_from).ratio();
  row.bound = belady(played, capacity, counted_from).ratio();
  return row;
}

struct Cost {
  std::string policy;
  double bytes_per_object = 0;
  double ns_per_block = 0;
};

// Requests of 32 blocks; every fourth repeats one that lies up to 200,000 requests back.
Cost measure_cost(EvictionKind kind) {
  constexpr size_t kCapacity = 1'000'000;
  constexpr size_t kRequests = 250'000;
  constexpr size_t kLength = 32;
  std::vector<replay::Request> requests(kRequests);
  for (size_t r = 0; r < kRequests; ++r) {
    const size_t source = r % 4 == 3 ? r - std::min(r, spread(r) % 200'000) : r;
    for (size_t i = 0; i < kLength; ++i) requests[r].hash_ids.push_back(source * kLength + i);
  }
  policy::SlotStates slots;
  const auto policy = policy::make_eviction_policy(kind, slots);
  const auto start = std::chrono::steady_clock::now();
  simulate(requests, kCapacity, *policy);
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  // The table of slots is counted by its slots, not by the slack of a growing vector.
  const double bytes = static_cast<double>(policy->memory_bytes()) +
                       static_cast<double>(policy->size() * sizeof(policy::SlotState));
  return {std::string(name_of(kind)), bytes / static_cast<double>(policy->size()),
          ns / static_cast<double>(kRequests * kLength)};
}

// ---- Output

void print_header() {
  std::printf("%-14s %-15s %8s  %7s %7s %7s %7s %9s %7s  %7s %7s\n", "trace", "part", "capacity",
              "lru", "s3fifo", "lfu_da", "arc", "adaptive", "bound", "closed", "lead");
}

void print_row(const Row& r, bool json) {
  if (json)
    std::printf(
        "%s{\"trace\": \"%s\", \"part\": \"%s\", \"capacity\": %zu, \"lru\": %.6f, \"s3fifo\": "
        "%.6f, \"lfu_da\": %.6f, \"arc\": %.6f, \"adaptive\": %.6f, \"bound\": %.6f}",
        "  ", r.trace.c_str(), r.part.c_str(), r.capacity, r.lru, r.s3fifo, r.lfu_da, r.arc,
        r.adaptive, r.bound);
  else
    std::printf("%-14s %-15s %8zu  %7.4f %7.4f %7.4f %7.4f %9.4f %7.4f  %6.1f%% %+6.1f%%\n",
                r.trace.c_str(), r.part.c_str(), r.capacity, r.lru, r.s3fifo, r.lfu_da, r.arc,
                r.adaptive, r.bound, 100 * r.closed(), 100 * r.lead());
  std::fflush(stdout);
}

void print_cost(const Cost& c, bool json) {
  if (json)
    std::printf("  {\"policy\": \"%s\", \"bytes_per_object\": %.1f, \"ns_per_block\": %.0f}",
                c.policy.c_str(), c.bytes_per_object, c.ns_per_block);
  else
    std::printf("%-10s %16.1f %13.0f\n", c.policy.c_str(), c.bytes_per_object, c.ns_per_block);
}

// ---- Input

[[noreturn]] void usage(const char* problem) {
  std::fprintf(stderr,
               "%s\nberth-bench-policy [--trace FILE]... [--capacity BLOCKS]... [--all-only] "
               "[--json]\n",
               problem);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const auto value = [&]() -> std::string {
      if (++i >= argc) usage((name + ": a value must follow").c_str());
      return argv[i];
    };
    if (name == "--trace") {
      options.traces.push_back(value());
    } else if (name == "--capacity") {
      const std::string text = value();
      options.capacities.push_back(std::strtoull(text.c_str(), nullptr, 10));
      if (options.capacities.back() == 0) usage("--capacity: a number of blocks, at least 1");
    } else if (name == "--all-only") {
      options.all_only = true;
    } else if (name == "--json") {
      options.json = true;
    } else {
      usage((name + ": unknown option").c_str());
    }
  }
  if (options.capacities.empty()) options.capacities = {1000, 5000, 10'000, 30'000, 50'000};
  return options;
}

// A block is named by the prefix through it, as chunks are in Berth: the same document behind
// another prefix is another block. In the recorded traces every block has one parent anyway.
std::vector<replay::Request> named_by_prefix(std::vector<replay::Request> requests) {
  for (replay::Request& request : requests) {
    uint64_t prefix = 0;
    for (uint64_t& block : request.hash_ids) block = prefix = spread(prefix ^ block);
  }
  return requests;
}

Trace load(const std::string& path) {
  auto requests = replay::read_trace(path, 0);
  if (!requests) usage(requests.error().message.c_str());
  std::string name = std::filesystem::path(path).stem();
  if (const size_t at = name.rfind("_trace"); at != std::string::npos) name.resize(at);
  return {name, named_by_prefix(std::move(*requests))};
}

std::vector<Trace> traces_of(const Options& options) {
  std::vector<Trace> traces;
  for (const std::string& path : options.traces) traces.push_back(load(path));
  if (!traces.empty()) return traces;
  const std::filesystem::path recorded = "../shared/traces";
  for (const char* name : {"conversation_trace.jsonl", "synthetic_trace.jsonl"})
    if (std::filesystem::exists(recorded / name)) traces.push_back(load(recorded / name));
  if (!traces.empty()) return traces;
  std::fprintf(stderr, "%s is absent: generated traces instead\n", recorded.c_str());
  for (const char* kind : {"chat", "rag", "agents"})
    traces.push_back({kind, named_by_prefix(replay::generate_trace(
                                replay::parse_trace_kind(kind).value(), 1, 8000))});
  return traces;
}

void run(const Options& options) {
  const bool json = options.json;
  const char* separator = "";
  const auto next_item = [&] {
    if (json) std::printf("%s\n", separator);
    separator = ",";
  };
  if (json)
    std::printf("{\"hit_ratios\": [");
  else
    print_header();
  for (const Trace& trace : traces_of(options))
    for (const Part& part : parts_of(trace, options.all_only))
      for (const size_t capacity : options.capacities) {
        next_item();
        print_row(measure(trace, part, capacity), json);
      }
  separator = "";
  if (json)
    std::printf("\n], \"costs\": [");
  else
    std::printf("\n%-10s %16s %13s\n", "policy", "bytes an object", "ns a block");
  for (const EvictionKind kind : kKinds) {
    next_item();
    print_cost(measure_cost(kind), json);
  }
  if (json) std::printf("\n]}\n");
}

}  // namespace
}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::run(berth::bench::parse(argc, argv));
  return 0;
}
