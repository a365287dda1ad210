#include "server/directory/id_index.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <unordered_map>
#include <vector>

namespace berth {
namespace {

TEST_CASE("the id index finds what a plain map holds, one by one and many at once",
          "[directory][index]") {
  const char* given = std::getenv("BERTH_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("replay with BERTH_SEED=" << seed);
  std::mt19937_64 random(seed);
  // Runs of several epochs, with holes, so that blocks are shared, emptied and used again.
  const auto some_id = [&] {
    return make_id<ReplicaId>(static_cast<Epoch>(1 + random() % 3), 1 + random() % 4000);
  };
  IdIndex index;
  std::unordered_map<ReplicaId, uint32_t> model;
  for (int step = 0; step < 40'000; ++step) {
    const ReplicaId first = some_id();
    const bool inserts = step / 10'000 % 2 == 0;
    const uint64_t count = 1 + random() % 20;
    for (uint64_t i = 0; i < count; ++i) {
      const ReplicaId id(first.value() + i);
      if (inserts && !model.contains(id)) {
        model[id] = static_cast<uint32_t>(random() % 1'000'000);
        index.insert(id, model[id]);
      } else if (!inserts) {
        index.erase(id);
        model.erase(id);
      }
    }
  }
  REQUIRE(index.size() == model.size());
  std::vector<ReplicaId> ids;
  for (int run = 0; run < 1000; ++run) {
    const ReplicaId first = some_id();
    const uint64_t count = random() % 40;
    for (uint64_t i = 0; i < count; ++i) ids.push_back(ReplicaId(first.value() + i));
  }
  std::vector<uint32_t> slots(ids.size());
  index.find(ids, slots);
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto known = model.find(ids[i]);
    const uint32_t expected = known == model.end() ? IdIndex::kNone : known->second;
    REQUIRE(index.find(ids[i]) == expected);
    REQUIRE(slots[i] == expected);
  }
}

TEST_CASE("ids that come and go in runs take no more memory than those that live at once need",
          "[directory][index]") {
  IdIndex index;
  const auto run = [&](uint64_t from, bool inserts) {
    for (uint64_t i = from; i < from + 4096; ++i) {
      if (inserts)
        index.insert(make_id<ReplicaId>(1, i), static_cast<uint32_t>(i));
      else
        index.erase(make_id<ReplicaId>(1, i));
    }
  };
  run(0, true);
  const size_t needed = index.memory_bytes();
  for (uint64_t round = 0; round < 20; ++round) {
    run(round * 4096, false);
    run((round + 1) * 4096, true);
  }
  CHECK(index.size() == 4096);
  CHECK(index.memory_bytes() == needed);
}

}  // namespace
}  // namespace berth
