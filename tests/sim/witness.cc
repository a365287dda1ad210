// The witness's account of what is really so, and its comparisons after a restart.
#include "tests/sim/witness.h"

#include <algorithm>

#include "common/text.h"
#include "server/directory/invariants.h"
#include "tests/sim/describe.h"

namespace berth::sim {

// ---- What is really so
// -----------------------------------------------------------------------------------------

void Witness::process_started(ProcessKey key, const pool::Ledger* ledger,
                              const worker::Agent* agent) {
  processes_[key] = {.ledger = ledger, .agent = agent};
}

void Witness::process_died(ProcessKey key) {
  Process& process = processes_[key];
  process.alive = false;
  process.ledger = nullptr;
  process.agent = nullptr;
  process.told.clear();
}

void Witness::reader_began(LeaseId lease, SessionId client, ProcessKey through,
                           const std::vector<ReplicaId>& replicas) {
  readers_[lease] = {client, through, replicas};
  ++in_use_[client];
  for (const ReplicaId replica : replicas) ++reading_[replica];
}

void Witness::reader_ended(LeaseId lease) {
  const auto it = readers_.find(lease);
  if (it == readers_.end()) return;
  --in_use_[it->second.client];
  for (const ReplicaId replica : it->second.replicas) --reading_[replica];
  readers_.erase(it);
}

void Witness::writer_began(ReplicaId replica, SessionId client) {
  writing_[replica] = client;
  ++in_use_[client];
}

void Witness::writer_ended(ReplicaId replica) {
  const auto it = writing_.find(replica);
  if (it == writing_.end()) return;
  --in_use_[it->second];
  writing_.erase(it);
}

bool Witness::is_dead(const Session& client) const {
  return std::all_of(client.life_names.begin(), client.life_names.end(),
                     [&](const std::string& name) { return locks_.is_free(name); });
}

void Witness::commit_told(ReplicaId replica, ProcessKey owner) {
  // It may have been evicted between the commit and the word of it.
  if (left_ready_.contains(replica)) return;
  if (Process& process = processes_[owner]; process.alive) process.told.insert(replica);
}

Witness::Process* Witness::process_of(const Directory& directory, SessionId worker) {
  const Session* session = directory.find<Session>(worker);
  if (!session) return nullptr;
  const auto it = processes_.find(session->request_token.low);
  return it == processes_.end() ? nullptr : &it->second;
}

Witness::Process* Witness::owner_of(const Directory& directory, PoolId id) {
  const Pool* pool = directory.find<Pool>(id);
  return pool && pool->owner.valid() ? process_of(directory, pool->owner) : nullptr;
}

bool Witness::is_trustworthy(const Process* process) const {
  return process && process->alive && process->settled &&
         process->agent->stage_name() != "draining";
}

// ---- Restarts
// --------------------------------------------------------------------------------------------------

void Witness::server_stopped(const Directory& directory, Loss loss) {
  if (loss == Loss::kNothing) {
    // While the store is degraded, what a failed commit left is known already.
    if (!std::exchange(last_known_, true)) last_ = describe(directory);
    return;
  }
  last_known_ = false;
  ++power_cuts_;
  answers_.clear();
  for (auto& [key, process] : processes_) process.settled = false;
}

void Witness::commit_failed(const Directory& directory, std::span<const Command> commands,
                            const Decision& decision) {
  room_.commit_failed(decision);
  note_imports(directory, commands, decision);
  for (const SessionId id : take_operators_word(directory, commands, decision))
    fences_in_doubt_.insert(id);
  last_known_ = true;
  last_ = describe(directory);
  Directory other = copy_of(directory);
  install(other, decision);
  last_other_ = describe(other);
  for (const Mutation& mutation : decision.mutations) {
    const auto* replica = std::get_if<Replica>(&mutation.value);
    const bool stays = replica && replica->state == ReplicaState::kReady;
    if (mutation.key.kind == RecordKind::kReplica && !stays) {
      left_ready_.insert(ReplicaId(mutation.key.first));
      for (auto& [key, process] : processes_) process.told.erase(ReplicaId(mutation.key.first));
    }
    if (mutation.key.kind == RecordKind::kSession)
      sessions_told_.erase(SessionId(mutation.key.first));
    if (mutation.key.kind == RecordKind::kPool) pools_told_.erase(PoolId(mutation.key.first));
    if (mutation.key.kind == RecordKind::kOperation)
      answers_.erase({SessionId(mutation.key.first), mutation.key.second});
    if (replica) ever_.insert(replica->id);
  }
}

void Witness::loaded(const Directory& fresh) {
  const std::string broken = check_invariants(fresh);
  judge_.expect(broken.empty(), [&] { return "after a restart: " + broken; });
  room_.loaded(fresh);
  if (last_known_) {
    const std::string now = describe(fresh);
    judge_.expect(now == last_ || now == last_other_, [&] {
      return "what was read back is not what was there: " + first_difference(now, last_);
    });
  }
  last_known_ = false;
  last_other_.clear();
  for (const SessionId id : sessions_told_)
    judge_.expect(fresh.find<Session>(id), [&] {
      return "session " + to_text(id) + " was given and is not there after a restart";
    });
  for (const PoolId id : pools_told_)
    judge_.expect(fresh.find<Pool>(id), [&] {
      return "pool " + to_text(id) + " was registered and is not there after a restart";
    });
}

void Witness::restarted(const Directory& directory) {
  judge_.expect(directory.meta().epoch > epoch_, [&] {
    return "the epoch did not rise at a restart: it is " + std::to_string(directory.meta().epoch);
  });
  epoch_ = directory.meta().epoch;
  const std::string broken = check_invariants(directory);
  judge_.expect(broken.empty(), [&] { return broken + " (after a restart)"; });
  room_.restarted(directory);
  for (const SessionId id : std::exchange(fences_in_doubt_, {}))
    if (const Session* session = directory.find<Session>(id); !session || session->ending)
      fence_by_operator(id);
  if (!std::exchange(store_moved_, false)) return;
  for (auto& [key, process] : processes_) {
    process.settled = false;
    process.told.clear();
  }
}

void Witness::check_recovery(const Directory& live, const Directory& rebuilt) {
  const std::string a = describe(live);
  const std::string b = describe(rebuilt);
  judge_.expect(a == b, [&] {
    return "the recovered directory differs from the live one: " + first_difference(a, b);
  });
}

}  // namespace berth::sim
