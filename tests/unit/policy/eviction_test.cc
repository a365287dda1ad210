// What holds for every policy.
#include "server/policy/eviction.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/unit/policy/pool_of.h"

namespace berth::policy {
namespace {

constexpr EvictionKind kKinds[] = {EvictionKind::kLru, EvictionKind::kS3Fifo, EvictionKind::kLfuDa,
                                   EvictionKind::kAdaptive};

TEST_CASE("a policy is known by its name, and another name is answered with those that are",
          "[policy][eviction]") {
  for (const EvictionKind kind : kKinds) CHECK(parse_eviction_kind(name_of(kind)).value() == kind);
  const auto refused = parse_eviction_kind("clock");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "eviction policy 'clock': accepted are lru, s3fifo, lfu_da and adaptive");
}

TEST_CASE("a protected chunk is passed over and stays", "[policy][eviction]") {
  for (const EvictionKind kind : kKinds) {
    INFO(name_of(kind));
    PoolOf pool(kind, 8);
    pool.request("abcdef");
    std::string gone = pool.evict(4, "ace");
    std::sort(gone.begin(), gone.end());
    CHECK(gone == "bdf");
    CHECK(pool.resident() == "ace");
    CHECK(pool.evict(8).size() == 3);
  }
}

TEST_CASE("one call looks at a bounded number of candidates, and the next goes on behind them",
          "[policy][eviction]") {
  constexpr uint32_t kObjects = 1000;
  for (const EvictionKind kind : kKinds) {
    INFO(name_of(kind));
    SlotStates slots;
    const auto policy = make_eviction_policy(kind, slots);
    for (uint32_t slot = 0; slot < kObjects; ++slot) {
      policy->request();
      policy->inserted({slot, uint64_t{slot} << 20, 0, false});
    }
    std::set<uint32_t> asked;
    size_t questions = 0;
    std::vector<uint32_t> victims;
    for (int call = 0; call < 10; ++call) {
      const size_t before = questions;
      policy->pick(
          5,
          [&](uint32_t slot) {
            asked.insert(slot);
            ++questions;
            return false;
          },
          victims);
      CHECK(questions - before <= EvictionPolicy::kSkipsMax + 5);
    }
    CHECK(victims.empty());
    CHECK(asked.size() >= 9 * EvictionPolicy::kSkipsMax);
    CHECK(policy->size() == kObjects);
  }
}

TEST_CASE("an event about a slot that is not held changes nothing", "[policy][eviction]") {
  for (const EvictionKind kind : kKinds) {
    INFO(name_of(kind));
    SlotStates slots;
    const auto policy = make_eviction_policy(kind, slots);
    policy->request();
    const uint32_t nobody[] = {0, 5, 1'000'000};
    policy->accessed(nobody);
    policy->removed(5);
    CHECK(policy->size() == 0);
    std::vector<uint32_t> victims;
    policy->pick(
        3, [](uint32_t) { return true; }, victims);
    CHECK(victims.empty());
  }
}

TEST_CASE("policies of several pools share one table of slots", "[policy][eviction]") {
  for (const EvictionKind kind : kKinds) {
    INFO(name_of(kind));
    SlotStates slots;
    const auto one = make_eviction_policy(kind, slots);
    const auto other = make_eviction_policy(kind, slots);
    for (uint32_t slot = 0; slot < 100; ++slot) {
      EvictionPolicy& policy = slot % 2 == 0 ? *one : *other;
      policy.request();
      policy.inserted({slot, uint64_t{slot} << 20, 0, false});
    }
    std::vector<uint32_t> victims;
    one->pick(
        100, [](uint32_t) { return true; }, victims);
    CHECK(victims.size() == 50);
    CHECK(std::all_of(victims.begin(), victims.end(), [](uint32_t s) { return s % 2 == 0; }));
    CHECK(other->size() == 50);
  }
}

TEST_CASE("a million objects cost 24 bytes each and what the policy says, which is bounded",
          "[policy][eviction]") {
  constexpr uint32_t kObjects = 1'000'000;
  struct Row {
    EvictionKind kind;
    size_t bytes_an_object;
  };
  const Row rows[] = {{EvictionKind::kLru, 1},
                      {EvictionKind::kS3Fifo, 17},
                      {EvictionKind::kLfuDa, 48},
                      {EvictionKind::kAdaptive, 17}};
  for (const Row& row : rows) {
    INFO(name_of(row.kind));
    SlotStates slots;
    const auto policy = make_eviction_policy(row.kind, slots);
    std::vector<uint32_t> free_slots;
    const auto insert = [&](uint64_t key) {
      if (key % 8 == 0) policy->request();
      const uint32_t slot = free_slots.empty() ? static_cast<uint32_t>(key) : free_slots.back();
      if (!free_slots.empty()) free_slots.pop_back();
      policy->inserted({slot, key * 0x9E3779B97F4A7C15u, static_cast<uint32_t>(key % 8), false});
    };
    for (uint64_t key = 0; key < kObjects; ++key) insert(key);
    for (uint64_t key = kObjects; key < 2 * kObjects; ++key) {
      policy->pick(
          1, [](uint32_t) { return true; }, free_slots);
      insert(key);
    }
    CHECK(policy->size() == kObjects);
    CHECK(policy->memory_bytes() <= row.bytes_an_object * kObjects);
  }
}

// Random events against a plain set: whatever is chosen, it was held, eligible, and is gone.
TEST_CASE("a policy holds what was inserted and neither picked nor removed, through random events",
          "[policy][eviction]") {
  const char* given = std::getenv("BERTH_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("replay with BERTH_SEED=" << seed);
  for (const EvictionKind kind : kKinds) {
    INFO(name_of(kind));
    std::mt19937_64 random(seed);
    SlotStates slots;
    const auto policy = make_eviction_policy(kind, slots);
    std::set<uint32_t> held;
    for (int step = 0; step < 30'000; ++step) {
      const auto slot = static_cast<uint32_t>(random() % 300);
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
          if (held.insert(slot).second)
            policy->inserted({slot, random() % 500 << 20, static_cast<uint32_t>(random() % 90),
                              random() % 4 == 0});
          break;
        case 3:
        case 4:
          policy->accessed({&slot, 1});
          break;
        case 5:
          policy->request();
          break;
        case 6:
          policy->removed(slot);
          held.erase(slot);
          break;
        default: {
          std::vector<uint32_t> victims;
          const uint32_t spared = static_cast<uint32_t>(random() % 3);
          const size_t wanted = random() % 4;
          policy->pick(
              wanted, [&](uint32_t s) { return s % 3 != spared; }, victims);
          REQUIRE(victims.size() <= wanted);
          for (const uint32_t victim : victims) {
            REQUIRE(victim % 3 != spared);
            REQUIRE(held.erase(victim) == 1);
          }
        }
      }
      REQUIRE(policy->size() == held.size());
    }
    std::vector<uint32_t> rest;
    policy->pick(
        1000, [](uint32_t) { return true; }, rest);
    CHECK(std::set<uint32_t>(rest.begin(), rest.end()) == held);
  }
}

}  // namespace
}  // namespace berth::policy
