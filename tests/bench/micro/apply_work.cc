// decide and install of the five calls of the hot path, as many calls a round as make 512 items.
// Commands are ready-made. Beside them: the same on an unordered_map from keys to places, which
// keeps no leases, charges no pool and could not be made durable.
#include <algorithm>
#include <map>
#include <memory>
#include <variant>

#include "common/check.h"
#include "server/directory/queries.h"
#include "tests/bench/core/chance.h"
#include "tests/bench/core/core_rig.h"
#include "tests/bench/core/objects.h"
#include "tests/bench/core/plain_registry.h"
#include "tests/bench/micro/work.h"

namespace berth::bench {
namespace {

constexpr uint64_t kPassingFirst = uint64_t{1} << 40;
constexpr uint64_t kCallsMax = 128;  // of a round: their answers are all kept until its end

// A directory with so many objects; one for all cases, which leave it as they found it.
struct Populated {
  explicit Populated(uint64_t population) : objects(population), member(rig.runner(), {}) {
    member.fill(population);
  }

  uint64_t random_first(uint64_t count) { return next_random(chance) % (objects - count + 1); }

  const uint64_t objects;
  CoreRig rig;
  CoreMember member;
  uint64_t passing = kPassingFirst;
  uint64_t chance = 1;
};

Populated& populated(uint64_t objects) {
  static std::map<uint64_t, std::unique_ptr<Populated>> all;
  std::unique_ptr<Populated>& one = all[objects];
  if (!one) one = std::make_unique<Populated>(objects);
  return *one;
}

struct Shape {
  uint64_t population = 0;
  uint64_t batch = 0;
  uint64_t calls() const { return std::clamp<uint64_t>(kRoundItems / batch, 1, kCallsMax); }
};

// The calls of a round.
struct Calls {
  std::vector<Command> commands;
  std::vector<Outcome> outcomes;
};

Work calls_of(const Shape& shape, const std::function<Command(Populated&)>& make,
              const std::function<void(Populated&, const Calls&)>& finish) {
  Populated& world = populated(shape.population);
  const auto calls = std::make_shared<Calls>();
  Work work;
  work.prepare = [=, &world] {
    calls->commands.clear();
    calls->outcomes.clear();
    calls->outcomes.reserve(shape.calls());
    for (uint64_t i = 0; i < shape.calls(); ++i) calls->commands.push_back(make(world));
  };
  work.run = [=, &world] {
    for (const Command& command : calls->commands)
      calls->outcomes.push_back(world.rig.run(command));
    return shape.calls() * shape.batch;
  };
  work.finish = [=, &world] {
    finish(world, *calls);
    world.member.forget_answers();
  };
  return work;
}

void take_away_committed(Populated& world, const Calls& calls) {
  for (const Command& command : calls.commands)
    world.member.take_away(std::get<Commit>(command).replicas);
}

Reserve next_reserve(Populated& world, uint64_t batch) {
  const uint64_t first = world.passing;
  world.passing += batch;
  return world.member.reserve(first, batch);
}

Work reserve_work(const Shape& shape) {
  return calls_of(
      shape, [=](Populated& world) -> Command { return next_reserve(world, shape.batch); },
      [=](Populated& world, const Calls& calls) {
        for (const Outcome& outcome : calls.outcomes) {
          const Commit commit = world.member.commit(std::get<Reserved>(outcome));
          BERTH_CHECK(commit.replicas.size() == shape.batch, "everything is granted");
          world.member.run<Committed>(commit);
          world.member.take_away(commit.replicas);
        }
      });
}

Work commit_work(const Shape& shape) {
  return calls_of(
      shape,
      [=](Populated& world) -> Command {
        return world.member.commit(world.member.run<Reserved>(next_reserve(world, shape.batch)));
      },
      take_away_committed);
}

Acquire next_acquire(Populated& world, uint64_t batch) {
  return world.member.acquire(world.random_first(batch), batch);
}

Work acquire_work(const Shape& shape) {
  return calls_of(
      shape, [=](Populated& world) -> Command { return next_acquire(world, shape.batch); },
      [=](Populated& world, const Calls& calls) {
        for (const Outcome& outcome : calls.outcomes) {
          const auto& acquired = std::get<Acquired>(outcome);
          BERTH_CHECK(acquired.classes.size() == shape.batch, "the chain is there");
          world.member.run<PerItem>(world.member.release(acquired));
        }
      });
}

Work release_work(const Shape& shape) {
  return calls_of(
      shape,
      [=](Populated& world) -> Command {
        return world.member.release(world.member.run<Acquired>(next_acquire(world, shape.batch)));
      },
      [](Populated&, const Calls&) {});
}

Work probe_work(const Shape& shape) {
  Populated& world = populated(shape.population);
  const auto chains = std::make_shared<std::vector<std::vector<Digest>>>();
  Work work;
  work.prepare = [=, &world] {
    chains->clear();
    for (uint64_t i = 0; i < shape.calls(); ++i)
      chains->push_back(world.member.chain(world.random_first(shape.batch), shape.batch));
  };
  work.run = [=, &world] {
    uint64_t items = 0;
    for (const std::vector<Digest>& chain : *chains) {
      const Directory& directory = world.rig.directory();
      const Namespace* ns = directory.find<Namespace>(world.member.namespace_id());
      const auto readers = readers_for(directory, *ns, world.member.client(), {});
      items += probe(directory, *ns, chain, *readers).classes.size();
    }
    BERTH_CHECK(items == shape.calls() * shape.batch, "the chains are there");
    return items;
  };
  return work;
}

// ---- The obvious registry

std::vector<ObjectKey> keys_of(uint64_t first, uint64_t count) {
  std::vector<ObjectKey> keys;
  for (const Digest& digest : digests_of(1, first, count)) keys.push_back({digest, 1, 0, 0});
  return keys;
}

PlainRegistry& plain_registry(uint64_t objects) {
  static std::map<uint64_t, PlainRegistry> all;
  PlainRegistry& registry = all[objects];
  if (registry.empty())
    for (const ObjectKey& key : keys_of(0, objects)) registry[key] = {1, 0, kPageBytes, 1};
  return registry;
}

using OnFacts = void (*)(PlainFacts& facts);

Work plain_lookups(const Shape& shape, OnFacts on_facts) {
  PlainRegistry& registry = plain_registry(shape.population);
  const auto keys = std::make_shared<std::vector<ObjectKey>>();
  const auto chance = std::make_shared<uint64_t>(1);
  Work work;
  work.prepare = [=] {
    keys->clear();
    for (uint64_t i = 0; i < shape.calls(); ++i) {
      const uint64_t first = next_random(*chance) % (shape.population - shape.batch + 1);
      for (const ObjectKey& key : keys_of(first, shape.batch)) keys->push_back(key);
    }
  };
  work.run = [=, &registry] {
    for (const ObjectKey& key : *keys) {
      PlainFacts& facts = registry.find(key)->second;
      on_facts(facts);
      keep(facts);
    }
    return keys->size();
  };
  return work;
}

Work plain_inserts(const Shape& shape) {
  PlainRegistry& registry = plain_registry(shape.population);
  const auto keys = std::make_shared<std::vector<ObjectKey>>();
  Work work;
  work.prepare = [=] { *keys = keys_of(kPassingFirst, shape.calls() * shape.batch); };
  work.run = [=, &registry] {
    for (const ObjectKey& key : *keys) registry[key] = {1, 0, kPageBytes, 1};
    return keys->size();
  };
  work.finish = [=, &registry] {
    for (const ObjectKey& key : *keys) registry.erase(key);
  };
  return work;
}

}  // namespace

void add_apply_cases(Cases& cases) {
  const auto add = [&](const std::string& name, const Shape& shape, Work (*make)(const Shape&),
                       const std::string& baseline, std::function<Work()> make_baseline) {
    cases.push_back({"apply/" + name + "/" + std::to_string(shape.population) + "/batch" +
                         std::to_string(shape.batch),
                     [=] { return make(shape); }, "unordered_map " + baseline,
                     std::move(make_baseline),
                     shape.population == kFewObjects && (shape.batch == 1 || shape.batch == 128)});
  };
  for (const uint64_t population : {kFewObjects, kManyObjects})
    for (const uint64_t batch : {1u, 32u, 128u, 512u}) {
      const Shape shape{population, batch};
      const auto lookups = [=](OnFacts on_facts) -> std::function<Work()> {
        return [=] { return plain_lookups(shape, on_facts); };
      };
      add("probe", shape, probe_work, "find", lookups([](PlainFacts&) {}));
      add("acquire", shape, acquire_work, "find, count up",
          lookups([](PlainFacts& facts) { ++facts.state; }));
      add("release", shape, release_work, "find, count down",
          lookups([](PlainFacts& facts) { --facts.state; }));
      add("reserve", shape, reserve_work, "insert", [=] { return plain_inserts(shape); });
      add("commit", shape, commit_work, "find, set",
          lookups([](PlainFacts& facts) { facts.state = 2; }));
    }
}

}  // namespace berth::bench
