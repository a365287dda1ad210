// The operator: evicts, pins, drains, sets and fences, at any time and without looking first.
#include <algorithm>

#include "tests/sim/world.h"

namespace berth::sim {

bool World::do_operators_deed(Deed deed) {
  if (deed < Deed::kEvict || deed > Deed::kFenceLive) return false;
  if (!server_.is_running()) return true;
  switch (deed) {
    case Deed::kEvict:
      evict();
      return true;
    case Deed::kEvictChunks:
      evict_chunks();
      return true;
    case Deed::kEvictNamespace:
      command(EvictNamespace{some_namespace()});
      return true;
    case Deed::kTrimPool:
      command(TrimPool{some_pool(), random_.below(weather_.pool_pages + 1) * kPageBytes});
      return true;
    case Deed::kDrain:
      drain(false);
      return true;
    case Deed::kUndrain:
      drain(true);
      return true;
    case Deed::kPin:
      pin(false);
      return true;
    case Deed::kUnpin:
      pin(true);
      return true;
    case Deed::kSetEviction:
      set_eviction();
      return true;
    case Deed::kQuota:
      command(SetNamespaceQuota{some_namespace(),
                                random_.chance(500) ? 0 : kPageBytes * (4 + random_.below(20))});
      return true;
    case Deed::kFence:
      fence_the_dead();
      return true;
    default:
      fence_the_living();
      return true;
  }
}

void World::command(Command command) {
  judge_.trace([&] { return "operator: " + commands_text({&command, 1}); });
  server_.submit(std::move(command), [](const Result<Outcome>&) {});
}

// ---- What is named: usually what there is
// -------------------------------------------------------------------------------

PoolId World::some_pool() {
  std::vector<PoolId> pools;
  for (const auto& [id, entry] : server_.directory().pools()) pools.push_back(id);
  return pools.empty() || random_.chance(30) ? PoolId(77) : random_.pick(pools);
}

SessionId World::some_worker_session() {
  std::vector<SessionId> workers;
  for (const auto& [id, session] : server_.directory().sessions())
    if (session.role == Role::kWorker) workers.push_back(id);
  return workers.empty() || random_.chance(30) ? SessionId(77) : random_.pick(workers);
}

std::string World::some_namespace() {
  if (random_.chance(30)) return "no such namespace";
  return namespace_spec(random_.below(kNamespaceCount)).name();
}

std::vector<Digest> World::some_digests(const std::string& name) {
  const size_t index = name == namespace_spec(0).name() ? 0 : 1;
  std::vector<Digest> digests;
  for (uint64_t left = 1 + random_.below(4); left > 0; --left) {
    const std::string bytes = Chunk{index, random_.below(weather_.chunk_count)}.digest();
    std::copy(bytes.begin(), bytes.end(), digests.emplace_back().bytes.begin());
  }
  return digests;
}

// ---- What is done
// ------------------------------------------------------------------------------------------------

void World::evict() {
  std::vector<ReplicaId> ready;
  for (const auto& [id, entry] : server_.directory().pools())
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = server_.directory().replicas().at(slot).pool_next) {
      const Replica& replica = server_.directory().replicas().at(slot).replica;
      if (replica.state == ReplicaState::kReady) ready.push_back(replica.id);
    }
  if (ready.empty()) return;
  Evict evict;
  for (uint64_t i = 0; i < 1 + random_.below(3); ++i) evict.replicas.push_back(random_.pick(ready));
  command(std::move(evict));
}

void World::evict_chunks() {
  EvictChunks evict{some_namespace(), {}};
  evict.digests = some_digests(evict.namespace_name);
  command(std::move(evict));
}

void World::drain(bool back) {
  const bool names_worker = random_.chance(300);
  const PoolId pool = names_worker ? PoolId() : some_pool();
  const SessionId worker = names_worker ? some_worker_session() : SessionId();
  if (back)
    command(Undrain{pool, worker});
  else
    command(Drain{pool, worker});
}

void World::pin(bool off) {
  const std::string name = some_namespace();
  std::vector<Digest> digests = some_digests(name);
  if (off) return command(UnpinChunks{name, std::move(digests)});
  PinChunks pin{
      name, std::move(digests), random_.chance(600) ? PinKind::kSoft : PinKind::kHard, {}};
  if (random_.chance(600)) pin.ttl = milliseconds(random_.between(100, 8000));
  command(std::move(pin));
}

void World::set_eviction() {
  SetEviction set{random_.chance(150), some_setting(random_)};
  if (random_.chance(50)) std::swap(set.setting.low_permille, set.setting.high_permille);
  command(std::move(set));
}

void World::fence_the_dead() {
  std::vector<SessionId> dead;
  for (const auto& [id, session] : server_.directory().sessions()) {
    if (session.ending) continue;
    if (session.role == Role::kClient) {
      if (witness_.is_dead(session)) dead.push_back(id);
      continue;
    }
    for (size_t i = 0; i < workers_.size(); ++i)
      if (session.name == "w" + std::to_string(i) && !workers_[i]->is_running()) dead.push_back(id);
  }
  if (!dead.empty()) command(FenceByOperator{random_.pick(dead), "", "it is dead", false});
}

// The operator errs, or knows better than anybody: its word is proof.
void World::fence_the_living() {
  FenceByOperator fence{SessionId(), "", std::string(kOperatorsWord), true};
  if (random_.chance(250)) {
    fence.node = random_.pick(hosts_).node;
    return command(std::move(fence));
  }
  std::vector<SessionId> sessions;
  for (const auto& [id, session] : server_.directory().sessions())
    if (session.role == Role::kClient || random_.chance(300)) sessions.push_back(id);
  if (sessions.empty()) return;
  fence.session = random_.pick(sessions);
  const auto& leases = server_.directory().leases();
  if (!leases.empty() && random_.chance(600)) fence.session = leases.begin()->second.session;
  command(std::move(fence));
}

}  // namespace berth::sim
