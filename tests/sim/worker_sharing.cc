// The simulated worker among the others of its host: connections between them, and pools of memory
// that travel over them under life locks, as worker/local/neighbours.h has it. What is passed to
// whom is the agent's decision.
#include "tests/sim/engine.h"
#include "tests/sim/worker_process.h"

namespace berth::sim {
namespace {

constexpr int64_t kAtHand = 5;  // what one thread of a process takes over from another

}  // namespace

void Worker::soon(std::function<void()> what) {
  const int64_t now = hub_.schedule.now();
  process_->soon_until = std::max(process_->soon_until, now + hub_.random.between(0, kAtHand));
  hub_.schedule.after(process_->soon_until - now,
                      [this, number = process_->number, what = std::move(what)] {
                        if (!lives(number)) return;
                        process_->scheduling.run([this, number, what] {
                          if (lives(number)) what();
                        });
                      });
}

// ---- Connections
// ------------------------------------------------------------------------------------------------

void Worker::introduce(const worker::Introduce& action) {
  process_->identity = action;
  process_->ends_all |= !action.session.valid();
  soon([this] { take_identity(); });
}

void Worker::take_identity() {
  const worker::Introduce& wanted = process_->identity;
  worker::Introduce& known = process_->known_as;
  const bool ends_all = std::exchange(process_->ends_all, false);
  const bool is_same = wanted.session == known.session && wanted.store_id == known.store_id;
  if (is_same && !ends_all) return;
  if (ends_all || known.session.valid()) {
    while (!process_->incoming.empty())
      hang_up(*process_->incoming.begin()->second.importer, process_->incoming.begin()->first);
    while (!process_->outgoing.empty())
      hang_up(*process_->outgoing.begin()->second.owner, process_->outgoing.begin()->first);
  }
  known = process_->identity;
}

void Worker::find_neighbours() {
  if (!hub_.weather.shares_pools || process_->scheduling.is_stopped() ||
      !process_->known_as.session.valid() || !hub_.random.chance(200))
    return;
  for (Worker* other : hub_.workers) {
    if (other == this || other->node_ != node_ || !other->is_running()) continue;
    const bool is_known =
        std::any_of(process_->outgoing.begin(), process_->outgoing.end(),
                    [&](const auto& entry) { return entry.second.owner == other; });
    if (is_known) continue;
    const uint64_t connection = hub_.schedule.next_number();
    process_->outgoing[connection] = {other, {}};
    v1::WorkerHello hello;
    hello.set_worker_name("w" + std::to_string(index_));
    hello.set_session(process_->known_as.session.value());
    hello.set_store_id(process_->known_as.store_id);
    other->greeted(*this, connection, hello);
  }
}

// The kernel connects them at once; the hello is read when this process gets to it.
void Worker::greeted(Worker& importer, uint64_t connection, const v1::WorkerHello& hello) {
  process_->incoming[connection] = {worker::PeerId(), &importer};
  soon([this, connection, hello] {
    const auto found = process_->incoming.find(connection);
    if (found == process_->incoming.end()) return;
    const worker::PeerId id(++process_->peers_made);
    found->second.id = id;
    input([id, hello](worker::Agent& agent, Time now) { agent.peer_connected(id, hello, now); });
  });
}

void Worker::hang_up(Worker& peer, uint64_t connection) {
  hub_.schedule.after(hub_.random.between(0, kAtHand),
                      [&peer, connection] { peer.connection_ended(connection); });
  end_connection(connection);
}

void Worker::connection_ended(uint64_t connection) {
  if (process_) soon([this, connection] { end_connection(connection); });
}

// What came over it is let go.
void Worker::end_connection(uint64_t connection) {
  if (const auto from = process_->incoming.extract(connection); !from.empty()) {
    const worker::PeerId id = from.mapped().id;
    if (id.valid()) input([id](worker::Agent& agent, Time now) { agent.peer_ended(id, now); });
    return;
  }
  const auto to = process_->outgoing.extract(connection);
  if (to.empty()) return;
  for (const worker::ImportId id : to.mapped().imports)
    input([id](worker::Agent& agent, Time now) { agent.import_ended(id, now); });
}

void Worker::break_some_connection() {
  if (!process_ || process_->outgoing.empty()) return;
  auto it = process_->outgoing.begin();
  std::advance(it, static_cast<int64_t>(hub_.random.below(process_->outgoing.size())));
  const uint64_t connection = it->first;
  it->second.owner->connection_ended(connection);
  connection_ended(connection);
}

// The kernel closes what a dead process had open.
void Worker::leave_neighbours(Process& dead) {
  const auto tell = [&](Worker& peer, uint64_t connection) {
    hub_.schedule.after(hub_.random.between(0, 30),
                        [&peer, connection] { peer.connection_ended(connection); });
  };
  for (const auto& [connection, from] : dead.incoming) tell(*from.importer, connection);
  for (const auto& [connection, to] : dead.outgoing) tell(*to.owner, connection);
  for (const auto& [id, import] : dead.imports) hub_.locks.let_go(import.life_name);
  for (const std::string& name : dead.export_locks) hub_.locks.let_go(name);
}

// ---- Pools of ours
// ----------------------------------------------------------------------------------------------

void Worker::lock_export(const worker::LockExport& action) {
  std::string name;
  if (!hub_.random.chance(20)) {  // else: no file could be made
    name = "w" + std::to_string(index_) + "-x" + std::to_string(++life_names_) + ".life";
    hub_.locks.take(name);
    process_->export_locks.insert(name);
  }
  soon([this, action, name] {
    input([action, name](worker::Agent& agent, Time now) {
      agent.export_locked(action.peer, action.pool_slot, name, now);
    });
  });
}

void Worker::discard_lock(const std::string& life_name) {
  if (process_->export_locks.erase(life_name) > 0) hub_.locks.let_go(life_name);
}

void Worker::pass_export(worker::PassExport action) {
  soon([this, action = std::move(action)] { pass(action); });
}

void Worker::pass(const worker::PassExport& what) {
  const std::string& life_name = what.message.life_name();
  const auto peer = std::find_if(process_->incoming.begin(), process_->incoming.end(),
                                 [&](const auto& entry) { return entry.second.id == what.peer; });
  if (peer == process_->incoming.end()) return discard_lock(life_name);
  Worker& importer = *peer->second.importer;
  if (process_->export_locks.erase(life_name) == 0) return hang_up(importer, peer->first);
  process_->passed_locks.insert(life_name);
  // What is on its way in a socket is held by nobody but the socket.
  hub_.schedule.after(hub_.random.between(0, kAtHand),
                      [&importer, connection = peer->first, message = what.message,
                       pool = ImportedPool{process_->memory[what.pool_slot], life_name}] {
                        importer.passed(connection, message, pool);
                      });
}

// ---- Pools of others
// --------------------------------------------------------------------------------------------

void Worker::passed(uint64_t connection, const v1::SharedPool& shared, ImportedPool pool) {
  if (!process_ || !process_->outgoing.contains(connection))
    return hub_.locks.let_go(pool.life_name);
  const worker::ImportId id(++process_->imports_made);
  process_->outgoing.at(connection).imports.push_back(id);
  process_->imports[id] = std::move(pool);
  soon([this, id, shared] {
    input([id, shared](worker::Agent& agent, Time now) { agent.import_offered(id, shared, now); });
  });
}

void Worker::drop_import(worker::ImportId import) {
  const auto found = process_->imports.extract(import);
  if (!found.empty()) hub_.locks.let_go(found.mapped().life_name);
}

void Worker::grant_import(const worker::GrantImport& action) {
  const auto it = process_->joins.find(action.join);
  if (it == process_->joins.end() || !process_->imports.contains(action.import)) return;
  Process::PendingJoin& join = it->second;
  hub_.schedule.after(
      join.push_delay(hub_),
      [engine = join.engine, run = join.engine_run, key = process_->key, id = action.join,
       import = action.import,
       pool = PoolId(action.pool.pool())] { engine->pool_added(run, key, id, import, pool); });
}

std::optional<Worker::ImportedPool> Worker::fetch_import(worker::JoinId join,
                                                         worker::ImportId import) {
  if (!process_ || !process_->joins.contains(join)) return std::nullopt;
  const auto found = process_->imports.find(import);
  if (found == process_->imports.end()) return std::nullopt;
  hub_.locks.inherit(found->second.life_name);
  return found->second;
}

}  // namespace berth::sim
