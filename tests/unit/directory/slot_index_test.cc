#include "server/directory/slot_index.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>

#include "server/directory/replica_table.h"

namespace berth {
namespace {

TEST_CASE(
    "the replica table finds by id and key what a plain map holds, through random inserts and "
    "erases",
    "[directory][index]") {
  const char* given = std::getenv("BERTH_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  INFO("replay with BERTH_SEED=" << seed);
  std::mt19937_64 random(seed);
  ReplicaTable table;
  uint32_t head = ReplicaTable::kNone;
  std::map<uint64_t, ObjectKey> model;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 5 < 3 || model.empty()) {
      Replica replica;
      replica.id = ReplicaId(1 + random() % 5000);
      if (model.contains(replica.id.value())) continue;
      replica.key.digest.bytes[0] =
          static_cast<uint8_t>(random() % 200);  // several copies of one object are common
      replica.key.namespace_number = 1;
      table.insert(replica, head);
      model[replica.id.value()] = replica.key;
    } else {
      auto victim = model.lower_bound(random() % 5000);
      if (victim == model.end()) victim = model.begin();
      table.erase(table.slot_of(ReplicaId(victim->first)), head);
      model.erase(victim);
    }
  }
  REQUIRE(table.size() == model.size());
  for (const auto& [id, key] : model) {
    REQUIRE(table.slot_of(ReplicaId(id)) != ReplicaTable::kNone);
    bool found = false;
    for (uint32_t s = table.first_slot_of(key); s != ReplicaTable::kNone;
         s = table.at(s).next_same_key)
      found |= table.at(s).replica.id.value() == id;
    REQUIRE(found);
  }
  size_t listed = 0;
  for (uint32_t s = head; s != ReplicaTable::kNone; s = table.at(s).pool_next) ++listed;
  REQUIRE(listed == model.size());
}

}  // namespace
}  // namespace berth
