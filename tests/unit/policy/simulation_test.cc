// The policies and the bound against naive models that do the obvious thing slowly, and against
// what is known of the recorded traces.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "tests/bench/arc.h"
#include "tests/bench/policy_simulation.h"

namespace berth::policy {
namespace {

using bench::Requests;

// Scans everything for the lowest worth: (number, then touched longest ago).
class Naive : public EvictionPolicy {
 public:
  void request() override {}
  void accessed(std::span<const uint32_t> slots) override {
    for (const uint32_t slot : slots) touch(slot);
  }
  void inserted(const Chunk& chunk) override { touch(chunk.slot); }
  void removed(uint32_t slot) override { worth_.erase(slot); }
  void pick(size_t n, const Eligible&, std::vector<uint32_t>& victims) override {
    for (; n > 0; --n) {
      const auto lowest =
          std::min_element(worth_.begin(), worth_.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      age_ = lowest->second.number;
      victims.push_back(lowest->first);
      worth_.erase(lowest);
    }
  }
  size_t size() const override { return worth_.size(); }
  size_t memory_bytes() const override { return 0; }
  std::string describe() const override { return "naive"; }

 protected:
  struct Worth {
    uint64_t number = 0;
    uint64_t touched = 0;
    uint64_t uses = 0;
    friend bool operator<(const Worth& a, const Worth& b) {
      return std::pair(a.number, a.touched) < std::pair(b.number, b.touched);
    }
  };
  virtual void value(Worth& worth) = 0;
  uint64_t age_ = 0;

 private:
  void touch(uint32_t slot) {
    Worth& worth = worth_[slot];
    ++worth.uses;
    worth.touched = ++touches_;
    value(worth);
  }
  std::map<uint32_t, Worth> worth_;
  uint64_t touches_ = 0;
};
class NaiveLru final : public Naive {
  void value(Worth& worth) override { worth.number = 0; }
};
class NaiveLfuDa final : public Naive {
  void value(Worth& worth) override { worth.number = age_ + worth.uses; }
};

uint64_t seed_given() {
  const char* given = std::getenv("BERTH_SEED");
  return given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

// Prompts that branch off each other: block names are unique to their prefix.
std::vector<replay::Request> branching(std::mt19937_64& random, size_t count, size_t depth) {
  std::vector<replay::Request> requests(count);
  for (replay::Request& request : requests) {
    uint64_t prefix = 0;
    const size_t length = 1 + random() % depth;
    for (size_t i = 0; i < length; ++i)
      request.hash_ids.push_back(prefix = bench::spread(prefix ^ (random() % 3 * (i + 1))));
  }
  return requests;
}

TEST_CASE("lru and lfu_da choose what a scan of everything would choose", "[policy][eviction]") {
  const uint64_t seed = seed_given();
  INFO("replay with BERTH_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    const auto requests = branching(random, 300, 6);
    const size_t capacity = 5 + random() % 60;
    SlotStates slots;
    NaiveLru naive_lru;
    NaiveLfuDa naive_lfu_da;
    const auto lru = make_eviction_policy(EvictionKind::kLru, slots);
    CHECK(bench::simulate(requests, capacity, *lru).hits ==
          bench::simulate(requests, capacity, naive_lru).hits);
    SlotStates other_slots;
    const auto lfu_da = make_eviction_policy(EvictionKind::kLfuDa, other_slots);
    CHECK(bench::simulate(requests, capacity, *lfu_da).hits ==
          bench::simulate(requests, capacity, naive_lfu_da).hits);
  }
}

// The most prefix hits from request `at` on, by trying everything that could be kept.
size_t best_of_all(const std::vector<replay::Request>& requests, size_t capacity, size_t at,
                   const std::vector<uint64_t>& resident) {
  if (at == requests.size()) return 0;
  const std::vector<uint64_t>& chain = requests[at].hash_ids;
  const auto is_resident = [&](uint64_t block) {
    return std::find(resident.begin(), resident.end(), block) != resident.end();
  };
  const auto missing = std::find_if_not(chain.begin(), chain.end(), is_resident);
  const auto hits = static_cast<size_t>(missing - chain.begin());
  std::vector<uint64_t> all = resident;
  for (const uint64_t block : chain)
    if (!is_resident(block)) all.push_back(block);
  size_t best = 0;
  for (uint32_t kept = 0; kept < (1u << all.size()); ++kept) {
    std::vector<uint64_t> next;
    for (size_t i = 0; i < all.size(); ++i)
      if (kept >> i & 1) next.push_back(all[i]);
    // Keeping fewer than there is room for is never better.
    if (next.size() != std::min(capacity, all.size())) continue;
    best = std::max(best, best_of_all(requests, capacity, at + 1, next));
  }
  return hits + best;
}

TEST_CASE("the bound is exactly the most prefix hits that any choice can get", "[policy][bound]") {
  const uint64_t seed = seed_given();
  INFO("replay with BERTH_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    const auto requests = branching(random, 5, 3);
    const size_t capacity = 2 + random() % 2;
    CHECK(bench::belady(requests, capacity).hits == best_of_all(requests, capacity, 0, {}));
  }
}

TEST_CASE("no policy has more hits than the bound, and with room for all each reaches it",
          "[policy][bound]") {
  const uint64_t seed = seed_given();
  INFO("replay with BERTH_SEED=" << seed);
  std::mt19937_64 random(seed);
  const auto requests = branching(random, 2000, 8);
  for (const size_t capacity : {10u, 100u, 400u, 20'000u}) {
    const uint64_t bound = bench::belady(requests, capacity).hits;
    for (const EvictionKind kind : {EvictionKind::kLru, EvictionKind::kS3Fifo, EvictionKind::kLfuDa,
                                    EvictionKind::kAdaptive}) {
      SlotStates slots;
      const auto policy = make_eviction_policy(kind, slots);
      const uint64_t hits = bench::simulate(requests, capacity, *policy).hits;
      INFO(name_of(kind) << " at " << capacity);
      CHECK(hits <= bound);
      if (capacity == 20'000) CHECK(hits == bound);
    }
    bench::Arc arc(capacity);
    CHECK(bench::simulate(requests, capacity, arc).hits <= bound);
  }
}

struct Recorded {
  const char* file;
  double unbounded;
  std::vector<std::pair<size_t, double>> lru;
};

TEST_CASE("on the recorded traces lru gives the known ratios, and adaptive is not below any other",
          "[policy][trace]") {
  const Recorded traces[] = {
      {"conversation_trace.jsonl", 0.3664, {{1000, 0.0445}, {10'000, 0.2112}, {50'000, 0.3546}}},
      {"synthetic_trace.jsonl", 0.6396, {{1000, 0.0825}, {10'000, 0.4235}, {50'000, 0.6396}}}};
  const std::filesystem::path folder = std::filesystem::path(BERTH_SOURCE_DIR) / "../shared/traces";
  for (const Recorded& trace : traces) {
    if (!std::filesystem::exists(folder / trace.file)) {
      WARN(trace.file << " is absent: not tested");
      continue;
    }
    const auto requests = replay::read_trace((folder / trace.file).string(), 0).value();
    CHECK(bench::belady(requests, 1'000'000).ratio() == Approx(trace.unbounded).margin(0.00005));
    for (const auto& [capacity, known] : trace.lru) {
      const auto ratio_of = [&, room = capacity](EvictionKind kind) {
        SlotStates slots;
        const auto policy = make_eviction_policy(kind, slots);
        return bench::simulate(requests, room, *policy).ratio();
      };
      INFO(trace.file << " at " << capacity);
      const double lru = ratio_of(EvictionKind::kLru);
      CHECK(lru == Approx(known).margin(0.00005));
      bench::Arc arc(capacity);
      const double best =
          std::max({lru, ratio_of(EvictionKind::kS3Fifo), ratio_of(EvictionKind::kLfuDa),
                    bench::simulate(requests, capacity, arc).ratio()});
      CHECK(ratio_of(EvictionKind::kAdaptive) >= 0.995 * best);
    }
  }
}

}  // namespace
}  // namespace berth::policy
