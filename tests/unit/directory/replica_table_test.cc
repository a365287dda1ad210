#include "server/directory/replica_table.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

namespace berth {
namespace {

ObjectKey some_key(uint64_t number) {
  ObjectKey key;
  std::memcpy(key.digest.bytes.data(), &number, sizeof number);
  key.namespace_number = 1;
  return key;
}

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
      replica.key = some_key(random() % 200);  // several copies of one object are common
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

TEST_CASE("a batch of keys or ids answers what each of them answers alone", "[directory][index]") {
  ReplicaTable table;
  uint32_t head = ReplicaTable::kNone;
  for (uint64_t i = 1; i <= 5000; ++i) {
    Replica replica;
    replica.id = ReplicaId(i);
    replica.key = some_key(i);
    table.insert(replica, head);
  }
  std::vector<ObjectKey> keys;
  std::vector<ReplicaId> ids;
  for (uint64_t i = 0; i < 300; ++i) {  // every third is not there
    keys.push_back(some_key(i % 3 == 0 ? 9000 + i : i * 16));
    ids.push_back(ReplicaId(i % 3 == 0 ? 9000 + i : i / 3 + i % 3 * 2000));
  }
  std::vector<uint32_t> by_key(keys.size());
  std::vector<uint32_t> by_id(ids.size());
  table.first_slots_of(keys, by_key);
  table.slots_of(ids, by_id);
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(by_key[i] == table.first_slot_of(keys[i]));
    CHECK(by_id[i] == table.slot_of(ids[i]));
    CHECK((by_key[i] == ReplicaTable::kNone) == (i % 3 == 0));
    CHECK((by_id[i] == ReplicaTable::kNone) == (i % 3 == 0));
  }
}

TEST_CASE("a replica that is replaced in its slot leaves what follows it in peace",
          "[directory][index]") {
  ReplicaTable table;
  uint32_t head = ReplicaTable::kNone;
  Replica replica;
  replica.id = ReplicaId(1);
  const uint32_t slot = table.insert(replica, head);
  table.at(slot).lease_count = 0xA1B2C3D4;
  table.at(slot).seen = 0xE5F60718;
  Replica changed;
  std::memset(static_cast<void*>(&changed), 0xFF, sizeof changed);
  changed.in_reservation = true;
  table.at(slot).replica = changed;
  CHECK(table.at(slot).lease_count == 0xA1B2C3D4);
  CHECK(table.at(slot).seen == 0xE5F60718);
  CHECK(table.at(slot).replica.size_bytes == UINT64_MAX);
}

}  // namespace
}  // namespace berth
