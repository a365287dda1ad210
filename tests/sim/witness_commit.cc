// The witness at a commit: what was about to change, by which commands, and whether it may.
#include <algorithm>

#include "common/text.h"
#include "server/directory/invariants.h"
#include "tests/sim/describe.h"
#include "tests/sim/witness.h"

namespace berth::sim {
namespace {

// A replica's life as one commit sees it; kNone before its birth and after its end.
enum class At : uint8_t { kNone, kReserved, kReady, kRetiring, kQuarantined };
constexpr size_t kAtCount = 5;

At at(const Replica* replica) { return replica ? static_cast<At>(replica->state) : At::kNone; }
const char* name_of(At at) {
  static constexpr std::array kNames{"nothing", "RESERVED", "READY", "RETIRING", "QUARANTINED"};
  return kNames[static_cast<size_t>(at)];
}

// What one command may do to a replica. `lost_power`: the directory may have forgotten or revived
// things since it last heard the owner.
bool may_go(const Command& command, const Directory& directory, bool lost_power, At from, At to) {
  const auto is = [&](At a, At b) { return from == a && to == b; };
  if (std::holds_alternative<Reserve>(command)) return is(At::kNone, At::kReserved);
  if (std::holds_alternative<Commit>(command))
    return is(At::kReserved, At::kReady) || is(At::kReserved, At::kRetiring);
  if (std::holds_alternative<Abort>(command))
    return is(At::kReserved, At::kNone) || is(At::kQuarantined, At::kNone);
  if (std::holds_alternative<Evict>(command) || std::holds_alternative<EvictChunks>(command))
    return is(At::kReady, At::kRetiring) || is(At::kQuarantined, At::kRetiring);
  if (std::holds_alternative<MakeRoom>(command)) return is(At::kReady, At::kRetiring);
  if (std::holds_alternative<ReclaimAck>(command)) return is(At::kRetiring, At::kNone);
  if (std::holds_alternative<Tick>(command)) return is(At::kReserved, At::kQuarantined);
  if (std::holds_alternative<ReconcileChunk>(command)) {
    if (is(At::kRetiring, At::kNone)) return true;
    // Its commit is not known here, and who reads through another worker has not been heard.
    if (is(At::kNone, At::kRetiring)) return true;
    const bool adopts = to == At::kReady || to == At::kRetiring;
    const bool revived = to == At::kNone;
    return lost_power && (adopts || revived);
  }
  if (std::holds_alternative<EndReattach>(command))
    return to == At::kNone && (from != At::kReady || lost_power);
  if (const auto* run = std::get_if<RunJob>(&command)) {
    const Job* job = directory.find<Job>(run->job);
    if (!job) return false;
    switch (job->kind) {
      case JobKind::kDropPool:
        return to == At::kNone;
      case JobKind::kClosePool:
      case JobKind::kDrainPool:
      case JobKind::kEvictNamespace:
        return is(At::kReady, At::kRetiring) || is(At::kQuarantined, At::kRetiring);
      case JobKind::kTrimPool:
        return false;
      case JobKind::kEndSession:
        return (from == At::kReserved || from == At::kQuarantined) &&
               (to == At::kRetiring || to == At::kNone);
    }
  }
  return false;
}

// Whether the batch, command by command, leads from one to the other.
bool may_go(std::span<const Command> commands, const Directory& directory, bool lost_power, At from,
            At to) {
  std::array<bool, kAtCount> reached{};
  reached[static_cast<size_t>(from)] = true;
  for (const Command& command : commands) {
    std::array<bool, kAtCount> next = reached;
    for (size_t a = 0; a < kAtCount; ++a)
      for (size_t b = 0; reached[a] && b < kAtCount; ++b)
        if (a != b &&
            may_go(command, directory, lost_power, static_cast<At>(a), static_cast<At>(b)))
          next[b] = true;
    reached = next;
  }
  return reached[static_cast<size_t>(to)];
}

template <class R>
const R* value_of(const Mutation& mutation) {
  return record_if<R>(mutation.value);
}

}  // namespace

std::string commands_text(std::span<const Command> commands) {
  static constexpr std::array kNames{"Restart",
                                     "OpenNamespace",
                                     "SetNamespaceQuota",
                                     "OpenWorker",
                                     "OpenClient",
                                     "CloseSession",
                                     "FenceClient",
                                     "FenceByOperator",
                                     "ReleaseOrphans",
                                     "LinkUp",
                                     "LinkDown",
                                     "Heartbeat",
                                     "BeginReattach",
                                     "ReconcileChunk",
                                     "EndReattach",
                                     "RegisterPool",
                                     "ClosePool",
                                     "ExportPool",
                                     "ImportPool",
                                     "EndExports",
                                     "Reserve",
                                     "Commit",
                                     "Abort",
                                     "Evict",
                                     "EvictChunks",
                                     "MakeRoom",
                                     "EvictNamespace",
                                     "TrimPool",
                                     "Drain",
                                     "Undrain",
                                     "PinChunks",
                                     "UnpinChunks",
                                     "SetEviction",
                                     "ReclaimAck",
                                     "Acquire",
                                     "Renew",
                                     "Release",
                                     "Tick",
                                     "RunJob"};
  static_assert(kNames.size() == std::variant_size_v<Command>);
  std::string text;
  for (const Command& command : commands) {
    if (!text.empty()) text += ", ";
    text += kNames[command.index()];
  }
  return text;
}

void Witness::before_install(const Directory& directory, const DirectoryConfig& config,
                             std::span<const Command> commands, const Decision& decision,
                             Time now) {
  check_refusals(directory, config, commands, decision, now);
  note_imports(directory, commands, decision);
  for (const SessionId id : take_operators_word(directory, commands, decision))
    fence_by_operator(id);
  for (const Mutation& mutation : decision.mutations) {
    const uint64_t id = mutation.key.first;
    switch (mutation.key.kind) {
      case RecordKind::kReplica:
        check_edge(directory, commands, ReplicaId(id), directory.find<Replica>(ReplicaId(id)),
                   value_of<Replica>(mutation), now);
        break;
      case RecordKind::kLease:
        check_lease_edge(commands, LeaseId(id), directory.find<Lease>(LeaseId(id)),
                         value_of<Lease>(mutation));
        if (const auto* lease = value_of<Lease>(mutation)) check_reach(directory, *lease);
        break;
      case RecordKind::kSession:
        check_session_edge(directory, commands, SessionId(id),
                           directory.find<Session>(SessionId(id)), value_of<Session>(mutation));
        break;
      case RecordKind::kPool:
        if (value_of<Pool>(mutation)) break;
        pools_told_.erase(PoolId(id));
        judge_.expect(mapped_[PoolId(id)] == 0 || given_up_.contains(PoolId(id)), [&] {
          return "the memory of pool " + to_text(PoolId(id)) + " was given back to its host by " +
                 commands_text(commands) + " while an engine maps it";
        });
        break;
      case RecordKind::kOperation:
        if (!value_of<Operation>(mutation)) answers_.erase({SessionId(id), mutation.key.second});
        break;
      default:
        break;
    }
  }
  note_ended_exports(commands, decision);
  room_.before_install(directory, commands, decision, now);
}

// An operator's word is proof: what the sessions held is not watched from now on.
std::vector<SessionId> Witness::take_operators_word(const Directory& directory,
                                                    std::span<const Command> commands,
                                                    const Decision& decision) {
  std::vector<SessionId> fenced;
  for (size_t i = 0; i < commands.size(); ++i) {
    const auto* fence = std::get_if<FenceByOperator>(&commands[i]);
    if (!fence || fence->reason != kOperatorsWord || !decision.outcomes[i]) continue;
    const std::vector<SessionId>& sessions = std::get<Fenced>(*decision.outcomes[i]).sessions;
    fenced.insert(fenced.end(), sessions.begin(), sessions.end());
    for (const auto& [id, entry] : directory.pools())
      if (entry.pool.node == fence->node) given_up_.insert(id);
  }
  return fenced;
}

void Witness::fence_by_operator(SessionId id) {
  fenced_by_operator_.insert(id);
  on_operator_fence(id);
}

void Witness::check_edge(const Directory& directory, std::span<const Command> commands,
                         ReplicaId id, const Replica* before, const Replica* after, Time now) {
  const At from = at(before);
  const At to = at(after);
  // The store relies on it: of an item of a run it writes state and reason alone.
  judge_.expect(!before || !after || before->in_reservation ||
                    (before->key == after->key && before->pool == after->pool &&
                     before->offset == after->offset && before->size_bytes == after->size_bytes),
                [&] { return "replica " + to_text(id) + " changed what it is or where it lies"; });
  if (from == to) return;
  judge_.digest(id.value(), static_cast<uint64_t>(from) * 8 + static_cast<uint64_t>(to));
  judge_.expect(may_go(commands, directory, power_cuts_ > 0, from, to), [&] {
    return "replica " + to_text(id) + " went from " + name_of(from) + " to " + name_of(to) +
           " by " + commands_text(commands) + ", an edge that does not exist";
  });
  if (from == At::kNone) {
    const bool is_new = ever_.insert(id).second;
    judge_.expect(is_new || power_cuts_ > 0 || to != At::kReserved,
                  [&] { return "replica id " + to_text(id) + " came back to life"; });
  }
  // One that was granted in a pool that drains now is committed and leaves at once.
  if (from == At::kReady || to == At::kRetiring) {
    left_ready_.insert(id);
    for (auto& [key, process] : processes_) process.told.erase(id);
  }
  if (to == At::kRetiring && before) room_.check_retired(directory, commands, *before, now);
  if (to != At::kNone) return;
  const Process* owner = owner_of(directory, before->pool);
  if (!owner || !owner->alive || owner->agent->stage_name() == "draining") return;
  judge_.expect(!writing_.contains(id), [&] {
    return "replica " + to_text(id) + " was freed by " + commands_text(commands) +
           " while its writer may touch it";
  });
  const auto reading = reading_.find(id);
  judge_.expect(reading == reading_.end() || reading->second == 0, [&] {
    return "replica " + to_text(id) + " was freed by " + commands_text(commands) +
           " under a reader";
  });
}

void Witness::check_lease_edge(std::span<const Command> commands, LeaseId id, const Lease* before,
                               const Lease* after) {
  if (!before == !after) return;
  if (after) {
    judge_.expect(
        any_is<Acquire>(commands) || (any_is<ReconcileChunk>(commands) && power_cuts_ > 0), [&] {
          return "lease " + to_text(id) + " was made by " + commands_text(commands) +
                 ", and no power was lost";
        });
    return;
  }
  judge_.expect(
      any_is<Release>(commands) || any_is<RunJob>(commands) || any_is<EndReattach>(commands) ||
          any_is<Acquire>(commands),
      [&] { return "lease " + to_text(id) + " was ended by " + commands_text(commands); });
  const auto reader = readers_.find(id);
  if (reader == readers_.end()) return;
  const Process& through = processes_[reader->second.through];
  judge_.expect(!is_trustworthy(&through), [&] {
    return "lease " + to_text(id) + " of client " + to_text(before->session) + " was ended by " +
           commands_text(commands) + " while it is being read under";
  });
}

void Witness::check_session_edge(const Directory& directory, std::span<const Command> commands,
                                 SessionId id, const Session* before, const Session* after) {
  if (!after) {
    sessions_told_.erase(id);
    // None before either: opened and ended within one commit.
    if (!before || before->role == Role::kClient) return;
    Process* process = process_of(directory, id);
    const bool was_fenced = fenced_by_operator_.contains(id);
    if (process && was_fenced) process->told.clear();
    const bool opens_again = std::any_of(commands.begin(), commands.end(), [&](const Command& c) {
      const auto* open = std::get_if<OpenWorker>(&c);
      return open && open->request_token.low == before->request_token.low;
    });
    judge_.expect(!process || !process->alive || opens_again || was_fenced, [&] {
      return "worker " + before->name + " was fenced by " + commands_text(commands) +
             " while its process is alive";
    });
    return;
  }
  if (after->role != Role::kClient || !after->ending || (before && before->ending)) return;
  judge_.expect(in_use_[id] == 0, [&] {
    return "client " + to_text(id) + " was ended by " + commands_text(commands) + " while it has " +
           std::to_string(in_use_[id]) + " spans in use";
  });
  const bool was_fenced = std::any_of(commands.begin(), commands.end(), [&](const Command& c) {
    const auto* fence = std::get_if<FenceClient>(&c);
    return fence && fence->client == id;
  });
  judge_.expect(!was_fenced || is_dead(*after), [&] {
    return "client " + to_text(id) + " was proven dead while one of its life locks is held";
  });
}

// A refused command must be as if it had never been sent.
void Witness::check_refusals(const Directory& directory, const DirectoryConfig& config,
                             std::span<const Command> commands, const Decision& decision,
                             Time now) {
  const bool all_accepted =
      std::all_of(decision.outcomes.begin(), decision.outcomes.end(),
                  [](const Result<Outcome>& outcome) { return outcome.has_value(); });
  if (all_accepted || !random_.chance(300)) return;
  std::vector<Command> accepted;
  for (size_t i = 0; i < commands.size(); ++i)
    if (decision.outcomes[i]) accepted.push_back(commands[i]);
  const Decision without = decide(directory, config, accepted, now);
  if (without.counters.replica != decision.counters.replica ||
      without.counters.lease != decision.counters.lease ||
      without.counters.job != decision.counters.job ||
      without.counters.session != decision.counters.session ||
      without.counters.pool != decision.counters.pool)
    return;  // a refused command may use up ids: they are never given back
  judge_.expect(without.mutations.size() == decision.mutations.size() &&
                    without.events.size() == decision.events.size() &&
                    without.asks.size() == decision.asks.size() && without.sync == decision.sync,
                [&] { return "a refused command left a trace: " + commands_text(commands); });
  if (!random_.chance(100)) return;
  Directory with_refused = copy_of(directory);
  Directory without_refused = copy_of(directory);
  install(with_refused, decision);
  install(without_refused, without);
  judge_.expect(describe(with_refused) == describe(without_refused),
                [&] { return "a refused command left a trace: " + commands_text(commands); });
}

void Witness::check_answers(std::span<const Command> commands, const Decision& decision) {
  const auto compare = [&](const Numbered& id, const Answer& answer) {
    const auto [it, is_new] = answers_.try_emplace({id.client, id.operation}, answer);
    if (is_new) return;
    Answer& first = it->second;
    bool same = first.codes.size() == answer.codes.size();
    for (size_t i = 0; same && i < first.codes.size(); ++i)
      same &= first.codes[i] == answer.codes[i] ||
              (first.first.valid() &&
               answer.codes[i] == static_cast<uint8_t>(StoreCode::kSkippedDropped));
    same &= first.first == answer.first && first.pools == answer.pools;
    same &= first.lease == answer.lease || !answer.lease.valid();
    judge_.expect(same, [&] {
      return "operation " + std::to_string(id.operation) + " of client " + to_text(id.client) +
             " was answered differently the second time";
    });
  };
  for (size_t i = 0; i < commands.size(); ++i) {
    if (!decision.outcomes[i]) continue;
    if (const auto* reserve = std::get_if<Reserve>(&commands[i])) {
      const auto& told = std::get<Reserved>(*decision.outcomes[i]);
      compare(reserve->id, {told.codes, told.first, told.pools, {}});
    } else if (const auto* commit = std::get_if<Commit>(&commands[i])) {
      compare(commit->id, {std::get<Committed>(*decision.outcomes[i]).codes, {}, {}, {}});
    } else if (const auto* acquire = std::get_if<Acquire>(&commands[i])) {
      const auto& told = std::get<Acquired>(*decision.outcomes[i]);
      compare(acquire->id, {{}, {}, {}, told.lease});
    }
  }
}

void Witness::reply_left(const Directory* installed, const Result<Outcome>& outcome) {
  if (!outcome) return;
  const auto told = [&](SessionId session) {
    // Opened and ended within one commit: it was never there.
    if (!installed || installed->find<Session>(session)) sessions_told_.insert(session);
  };
  if (const auto* opened = std::get_if<WorkerOpened>(&*outcome); opened && opened->session.valid())
    told(opened->session);
  if (const auto* joined = std::get_if<ClientOpened>(&*outcome)) told(joined->session);
  if (const auto* pool = std::get_if<PoolRegistered>(&*outcome)) pools_told_.insert(pool->pool);
}

void Witness::after_install(const Directory& directory, std::span<const Command> commands,
                            const Decision& decision) {
  // What was not changed holds as it did.
  if (!decision.mutations.empty()) {
    const std::string broken = check_invariants(directory);
    judge_.expect(broken.empty(),
                  [&] { return broken + " (after " + commands_text(commands) + ")"; });
  }
  check_budgets(directory, decision);
  for (size_t i = 0; i < commands.size(); ++i)
    if (const auto* up = std::get_if<LinkUp>(&commands[i]); up && decision.outcomes[i])
      check_attached(directory, up->caller.session);
  check_memory(directory);
  check_readers(directory);
  room_.after_install(directory, commands, decision);
}

// A grant never exceeds a budget. Adopted replicas may: they are charged, then drained.
void Witness::check_budgets(const Directory& directory, const Decision& decision) {
  for (const Mutation& mutation : decision.mutations) {
    const auto* replica = value_of<Replica>(mutation);
    if (!replica || replica->state != ReplicaState::kReserved) continue;
    const PoolEntry* entry = directory.find_pool(replica->pool);
    if (!entry) continue;
    judge_.expect(
        entry->usage.allocated_bytes() <= static_cast<int64_t>(entry->pool.spec.budget_bytes),
        [&] { return "a grant exceeds the budget of pool " + to_text(replica->pool); });
  }
}

// READY means that the owner really holds the bytes, complete, where the directory says.
void Witness::check_memory(const Directory& directory) {
  for (const auto& [id, entry] : directory.pools()) {
    const Process* owner = owner_of(directory, id);
    if (!is_trustworthy(owner)) continue;
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = directory.replicas().at(slot).pool_next) {
      const Replica& replica = directory.replicas().at(slot).replica;
      if (replica.state != ReplicaState::kReady) continue;
      const pool::LedgerEntry* held = owner->ledger->find(replica.id);
      judge_.expect(held && (held->state == pool::LedgerState::kWritten ||
                             held->state == pool::LedgerState::kSealed),
                    [&] {
                      return "replica " + to_text(replica.id) + " is READY, but its owner " +
                             (held ? "has it " + std::string(name_of(held->state))
                                   : std::string("does not hold it"));
                    });
      judge_.expect(!held || held->offset == replica.offset, [&] {
        return "replica " + to_text(replica.id) + " lies elsewhere than the directory says";
      });
    }
  }
}

void Witness::check_readers(const Directory& directory) {
  for (const auto& [lease, reader] : readers_) {
    const Process& through = processes_[reader.through];
    if (!is_trustworthy(&through)) continue;
    judge_.expect(directory.find<Lease>(lease), [id = lease, client = reader.client] {
      return "lease " + to_text(id) + " of client " + to_text(client) +
             " was given and not released, and the directory does not know it";
    });
  }
}

// A worker is there again: what its engines were told to be a hit must be one.
void Witness::check_attached(const Directory& directory, SessionId worker) {
  Process* process = process_of(directory, worker);
  if (!process || !process->alive) return;
  process->settled = true;
  for (const ReplicaId id : process->told) {
    const Replica* replica = directory.find<Replica>(id);
    judge_.expect(
        replica && (replica->state == ReplicaState::kReady || replica->why == Why::kOverQuota),
        [&] {
          return "replica " + to_text(id) +
                 " was acknowledged, and after its owner's re-attach it is " + name_of(at(replica));
        });
  }
}

}  // namespace berth::sim
