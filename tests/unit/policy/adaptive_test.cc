#include "server/policy/adaptive.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "tests/bench/policy_simulation.h"
#include "tests/unit/policy/pool_of.h"
#include "worker/replay/generate.h"

namespace berth::policy {
namespace {

// `count` requests of `length` chunks each that nobody has seen before.
std::vector<replay::Request> fresh(size_t count, size_t length, uint64_t first_id) {
  std::vector<replay::Request> requests(count);
  for (replay::Request& request : requests) {
    request.hash_ids.resize(length);
    std::iota(request.hash_ids.begin(), request.hash_ids.end(), first_id);
    first_id += length;
  }
  return requests;
}

TEST_CASE("adaptive shortens a chain from its end", "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 8);
  CHECK(pool.request("abcde").evict(5) == "edcba");
}

TEST_CASE("adaptive lets the oldest of equally used chains go first",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 8);
  CHECK(pool.requests({"abc", "def"}).evict(6) == "cbafed");
}

TEST_CASE("adaptive keeps what was used again longer than what is newer and was not",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 8);
  CHECK(pool.requests({"ab", "ab", "cd"}).evict(4) == "dcba");
}

TEST_CASE("adaptive counts a chunk that comes back after its eviction as used again",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 8);
  CHECK(pool.requests({"a"}).evict(1) == "a");
  CHECK(pool.requests({"a", "b"}).evict(2) == "ba");
}

TEST_CASE("adaptive lets what branches off from a known prefix go before new prompts",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 16);
  pool.requests({"abcd", "abcx", "efg"});
  CHECK(pool.evict(1) == "x");
}

TEST_CASE("adaptive keeps the next turn of a conversation as long as what it follows",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 16);
  pool.requests({"abc", "abcvwxy", "def"});
  CHECK(pool.evict(10) == "fedyxwvcba");
}

TEST_CASE("adaptive takes more than a turn adds for a branch, and its prefix with it",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 16);
  SECTION("whatever was used twice") {
    pool.requests({"abc", "abcvwxyz", "def"});
    CHECK(pool.evict(11) == "zyxwvcbafed");
  }
  SECTION("but not what was used more often") {
    pool.requests({"abc", "abc", "abcvwxyz", "def"});
    CHECK(pool.evict(11) == "zyxwvfedcba");
  }
  SECTION("nor what others were given") {
    pool.requests({"gh", "gh", "abc", "abcvwxyz", "def"});
    CHECK(pool.evict(13) == "zyxwvcbafedhg");
  }
}

TEST_CASE("adaptive counts a turn in chunks, however many items each has",
          "[policy][eviction][adaptive]") {
  SlotStates slots;
  Adaptive policy(slots);
  const auto store = [&](uint32_t first_slot, std::vector<uint32_t> positions) {
    for (const uint32_t position : positions) {
      policy.inserted({first_slot, 100 + first_slot, position, false});
      ++first_slot;
    }
  };
  const auto oldest = [&] {
    std::vector<uint32_t> victims;
    policy.pick(
        1, [](uint32_t) { return true; }, victims);
    return victims.at(0);
  };
  policy.request();
  store(0, {0, 0, 1, 1});
  policy.request();
  policy.accessed(std::vector<uint32_t>{0, 1, 2, 3});
  store(4, {2, 2, 3, 3, 4, 4, 5, 5});
  SECTION("four are a turn") {
    policy.request();
    store(20, {0});
    CHECK(oldest() == 20);
  }
  SECTION("five are not") {
    store(12, {6, 6});
    policy.request();
    store(20, {0});
    CHECK(oldest() == 13);
  }
}

TEST_CASE("adaptive remembers of an evicted chunk that something followed it",
          "[policy][eviction][adaptive]") {
  PoolOf pool(EvictionKind::kAdaptive, 16);
  CHECK(pool.requests({"abc"}).evict(2) == "cb");
  CHECK(pool.requests({"ab", "abx", "def"}).evict(1) == "x");
}

TEST_CASE("adaptive finds the prefix of chunks that come when others came in between",
          "[policy][eviction][adaptive]") {
  SlotStates slots;
  Adaptive policy(slots);
  const auto store = [&](std::vector<uint32_t> chain, uint32_t position) {
    for (const uint32_t slot : chain) policy.inserted({slot, 100 + slot, position++, false});
  };
  policy.request();
  store({0, 1}, 0);
  policy.request();
  store({2, 3, 4}, 0);
  policy.request();
  policy.accessed(std::vector<uint32_t>{0, 1});
  policy.request();
  policy.accessed(std::vector<uint32_t>{2, 3, 4});
  policy.request();
  store({5, 6}, 0);
  policy.resume();
  store({7, 8, 9, 10, 11}, 2);  // too much for one turn
  policy.resume();
  store({12}, 3);
  std::vector<uint32_t> victims;
  policy.pick(
      13, [](uint32_t) { return true; }, victims);
  CHECK(victims == std::vector<uint32_t>{11, 10, 9, 8, 7, 1, 0, 6, 5, 4, 3, 2, 12});
}

TEST_CASE("adaptive looks at every class, however many of the least valuable one may not leave",
          "[policy][eviction][adaptive]") {
  SlotStates slots;
  Adaptive policy(slots);
  constexpr uint32_t kTails = 3 * EvictionPolicy::kSkipsMax;
  for (uint32_t slot = 0; slot < kTails; ++slot) {
    policy.request();
    policy.inserted({slot, 100 + slot, 0, true});
  }
  policy.request();
  policy.inserted({kTails, 99, 0, false});
  std::vector<uint32_t> victims;
  policy.pick(
      1, [](uint32_t slot) { return slot >= kTails; }, victims);
  CHECK(victims == std::vector<uint32_t>{kTails});
}

TEST_CASE("adaptive lets the unused last chunk of a prompt go before everything else",
          "[policy][eviction][adaptive]") {
  SlotStates slots;
  Adaptive policy(slots);
  policy.request();
  policy.inserted({0, 100, 0, false});
  policy.inserted({1, 101, 1, true});
  policy.request();
  policy.inserted({2, 102, 0, false});
  policy.request();
  std::vector<uint32_t> victims;
  policy.pick(
      3, [](uint32_t) { return true; }, victims);
  CHECK(victims == std::vector<uint32_t>{1, 0, 2});
}

TEST_CASE("adaptive never values a chunk above its parent", "[policy][eviction][adaptive]") {
  // b and c are used often; then their parent is lost, and comes back as a chunk that was used
  // once: what hangs off it is worth no more.
  PoolOf pool(EvictionKind::kAdaptive, 8);
  pool.requests({"abc", "abc", "abc", "abc"});
  pool.remove('a');
  pool.requests({"abc", "xy", "xy"});
  CHECK(pool.evict(3) == "cba");
}

TEST_CASE("adaptive gives uses more credit where reuse comes late, and less where it comes soon",
          "[policy][eviction][adaptive]") {
  // Late: 40 prompts come round every 400 requests, amid prompts that never return and fill the
  // pool ten times over in between. Only credit for uses keeps them.
  std::vector<replay::Request> late;
  const std::vector<replay::Request> noise = fresh(6000, 10, 1'000'000);
  for (size_t r = 0; r < 6000; ++r) {
    replay::Request request = noise[r];
    if (r % 10 == 0) request.hash_ids = fresh(1, 10, 1 + (r / 10 % 40) * 10)[0].hash_ids;
    late.push_back(request);
  }
  SlotStates slots;
  Adaptive policy(slots);
  const double ratio = bench::simulate(late, 600, policy).ratio();
  SlotStates lru_slots;
  const auto lru = make_eviction_policy(EvictionKind::kLru, lru_slots);
  CHECK(bench::simulate(late, 600, *lru).ratio() == 0);
  CHECK(ratio > 0.08);  // of the tenth of all blocks that ever return

  // Soon, and never again: each prompt is asked five times within 20 requests. Credit for uses only
  // keeps what is dead.
  std::vector<replay::Request> soon;
  const std::vector<replay::Request> prompts = fresh(3000, 10, 1);
  for (size_t r = 0; r < 12'000; ++r) soon.push_back(prompts[r / 20 * 5 + r % 5]);
  SlotStates soon_slots;
  Adaptive soon_policy(soon_slots);
  bench::simulate(soon, 100, soon_policy);
  CHECK(soon_policy.setting().level_requests < policy.setting().level_requests);
}

TEST_CASE("adaptive stops evicting tails first where tails are used again",
          "[policy][eviction][adaptive]") {
  // Whole prompts return after 30 requests, and then never; the pool holds 80 chunks, which is 40
  // requests.
  std::vector<replay::Request> requests;
  const std::vector<replay::Request> prompts = fresh(4000, 2, 1);
  for (size_t r = 0; r < 4000; ++r) requests.push_back(prompts[r / 60 * 60 + r % 30]);
  SlotStates slots;
  Adaptive policy(slots);
  CHECK(policy.setting().tails_first);
  bench::simulate(requests, 80, policy);
  CHECK_FALSE(policy.setting().tails_first);
}

TEST_CASE("adaptive decides the same from the same events", "[policy][eviction][adaptive]") {
  const auto trace = replay::generate_trace(replay::TraceKind::kAgents, 3, 2000);
  uint64_t hits[2];
  std::string settings[2];
  for (int i = 0; i < 2; ++i) {
    SlotStates slots;
    Adaptive policy(slots);
    hits[i] = bench::simulate(trace, 500, policy).hits;
    settings[i] = policy.describe();
  }
  CHECK(hits[0] == hits[1]);
  CHECK(settings[0] == settings[1]);
}

}  // namespace
}  // namespace berth::policy
