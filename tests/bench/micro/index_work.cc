// The ways into the table of replicas, at random keys that are there: by object key, by id, and the
// bare hash index under both. Beside them: an unordered_map with the same keys.
#include <map>
#include <memory>
#include <unordered_map>

#include "common/check.h"
#include "server/directory/replica_table.h"
#include "tests/bench/core/chance.h"
#include "tests/bench/core/objects.h"
#include "tests/bench/core/plain_registry.h"
#include "tests/bench/micro/work.h"

namespace berth::bench {
namespace {

constexpr uint64_t kFirstId = uint64_t{1} << 40;

Replica replica_of(uint64_t object) {
  Replica replica;
  replica.id = ReplicaId(kFirstId + object);
  replica.key = {digests_of(1, object, 1)[0], 1, 0, 0};
  replica.pool = PoolId(1);
  replica.offset = object * kPageBytes;
  replica.size_bytes = kPageBytes;
  replica.state = ReplicaState::kReady;
  return replica;
}

struct Tables {
  explicit Tables(uint64_t population) : objects(population), keys(population) {
    for (uint64_t i = 0; i < objects; ++i) {
      const Replica replica = replica_of(i);
      keys[i] = replica.key;
      table.insert(replica, pool_head);
      slots.insert(hash_of(keys[i]), static_cast<uint32_t>(i));
      plain_by_key[keys[i]] = static_cast<uint32_t>(i);
      plain_by_id[replica.id] = static_cast<uint32_t>(i);
    }
  }

  const uint64_t objects;
  std::vector<ObjectKey> keys;
  ReplicaTable table;
  uint32_t pool_head = ReplicaTable::kNone;
  SlotIndex slots;
  std::unordered_map<ObjectKey, uint32_t, PlainHash> plain_by_key;
  std::unordered_map<ReplicaId, uint32_t> plain_by_id;
};

Tables& tables(uint64_t objects) {
  static std::map<uint64_t, std::unique_ptr<Tables>> all;
  std::unique_ptr<Tables>& one = all[objects];
  if (!one) one = std::make_unique<Tables>(objects);
  return *one;
}

// A round of `lookup` at random objects; each answers whether it found the object.
template <class Key, class Lookup>
Work lookups(uint64_t objects, Key (*key_at)(const Tables&, uint64_t), Lookup lookup) {
  const Tables& all = tables(objects);
  const auto wanted = std::make_shared<std::vector<Key>>();
  const auto chance = std::make_shared<uint64_t>(1);
  Work work;
  work.prepare = [=, &all] {
    wanted->clear();
    for (uint64_t i = 0; i < kRoundItems; ++i)
      wanted->push_back(key_at(all, next_random(*chance) % objects));
  };
  work.run = [=, &all] {
    uint64_t found = 0;
    for (const Key& key : *wanted) found += lookup(all, key);
    BERTH_CHECK(found == kRoundItems, "every key is there");
    return found;
  };
  return work;
}

ObjectKey key_at(const Tables& all, uint64_t object) { return all.keys[object]; }
ReplicaId id_at(const Tables&, uint64_t object) { return ReplicaId(kFirstId + object); }

// Replicas that come and go.
Work changes(uint64_t objects, bool measures_insert) {
  Tables& all = tables(objects);
  const auto passing = std::make_shared<std::vector<Replica>>();
  for (uint64_t i = 0; i < kRoundItems; ++i) passing->push_back(replica_of(objects + i));
  const auto insert = [=, &all] {
    for (const Replica& replica : *passing) all.table.insert(replica, all.pool_head);
  };
  const auto erase = [=, &all] {
    for (const Replica& replica : *passing)
      all.table.erase(all.table.slot_of(replica.id), all.pool_head);
  };
  return come_and_go(insert, erase, measures_insert);
}

Work plain_changes(uint64_t objects, bool measures_insert) {
  Tables& all = tables(objects);
  const auto passing = std::make_shared<std::vector<Replica>>();
  for (uint64_t i = 0; i < kRoundItems; ++i) passing->push_back(replica_of(objects + i));
  const auto insert = [=, &all] {
    for (const Replica& replica : *passing) {
      all.plain_by_key[replica.key] = 0;
      all.plain_by_id[replica.id] = 0;
    }
  };
  const auto erase = [=, &all] {
    for (const Replica& replica : *passing) {
      all.plain_by_key.erase(replica.key);
      all.plain_by_id.erase(replica.id);
    }
  };
  return come_and_go(insert, erase, measures_insert);
}

}  // namespace

void add_index_cases(Cases& cases) {
  const auto plain_by_key = [](const Tables& all, const ObjectKey& key) -> uint64_t {
    return all.plain_by_key.count(key);
  };
  const auto plain_by_id = [](const Tables& all, ReplicaId id) -> uint64_t {
    return all.plain_by_id.count(id);
  };
  const auto by_key = [](const Tables& all, const ObjectKey& key) -> uint64_t {
    return all.table.first_slot_of(key) != ReplicaTable::kNone;
  };
  const auto by_id = [](const Tables& all, ReplicaId id) -> uint64_t {
    return all.table.slot_of(id) != ReplicaTable::kNone;
  };
  const auto bare = [](const Tables& all, const ObjectKey& key) -> uint64_t {
    return all.slots.find(hash_of(key), [&](uint32_t slot) { return all.keys[slot] == key; }) !=
           SlotIndex::kNone;
  };
  for (const uint64_t objects : {kFewObjects, kManyObjects}) {
    const bool is_counted = objects == kFewObjects;
    const std::string with = "/" + std::to_string(objects);
    cases.push_back({"index/by_key" + with, [=] { return lookups(objects, key_at, by_key); },
                     "unordered_map find", [=] { return lookups(objects, key_at, plain_by_key); },
                     is_counted});
    cases.push_back({"index/by_id" + with, [=] { return lookups(objects, id_at, by_id); },
                     "unordered_map find", [=] { return lookups(objects, id_at, plain_by_id); },
                     is_counted});
    cases.push_back({"index/slots" + with, [=] { return lookups(objects, key_at, bare); },
                     "unordered_map find", [=] { return lookups(objects, key_at, plain_by_key); },
                     is_counted});
    for (const bool measures_insert : {true, false})
      cases.push_back({(measures_insert ? "index/insert" : "index/erase") + with,
                       [=] { return changes(objects, measures_insert); }, "two unordered_maps",
                       [=] { return plain_changes(objects, measures_insert); }, is_counted});
  }
}

}  // namespace berth::bench
