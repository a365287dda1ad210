// What each planted bug of the server does: at the boundary of decide(), never inside the product.
#include "tests/sim/planted.h"

#include <algorithm>
#include <type_traits>

#include "tests/sim/commands.h"
#include "tests/sim/server_run.h"
#include "tests/sim/witness.h"

namespace berth::sim {
namespace {

template <class C>
Caller* caller_in(C& command) {
  if constexpr (requires { command.id.caller; })
    return &command.id.caller;
  else if constexpr (requires { command.caller; })
    return &command.caller;
  else
    return nullptr;
}

Caller caller_of(const Directory& directory, SessionId worker) {
  const Session* session = directory.find<Session>(worker);
  return session ? Caller{worker, session->incarnation} : Caller{};
}

Caller worker_of_client(const Directory& directory, SessionId client) {
  const Session* session = directory.find<Session>(client);
  return session ? caller_of(directory, session->worker) : Caller{};
}

std::vector<ReplicaId> ready_of(const Directory& directory, SessionId owner) {
  std::vector<ReplicaId> ready;
  for (const auto& [id, entry] : directory.pools())
    for (uint32_t slot = entry.pool.owner == owner ? entry.head : ReplicaTable::kNone;
         slot != ReplicaTable::kNone; slot = directory.replicas().at(slot).pool_next)
      if (directory.replicas().at(slot).replica.state == ReplicaState::kReady)
        ready.push_back(directory.replicas().at(slot).replica.id);
  return ready;
}

}  // namespace

void Server::plant_command(Command command) {
  run_->queue.push_back(Queued{std::move(command), [](const Result<Outcome>&) {}});
  turn_soon();
}

// Changes records behind the directory's back, as if `blamed` had decided it.
void Server::plant_mutations(const Command& blamed, std::vector<Mutation> mutations) {
  if (mutations.empty()) return;
  Decision decision;
  decision.outcomes.emplace_back(Done{});
  decision.mutations = std::move(mutations);
  decision.counters = run_->directory.counters();
  if (!run_->store.commit(decision.mutations, run_->clock.now(), false)) return;
  witness_.before_install(run_->directory, config(), {&blamed, 1}, decision, run_->clock.now());
  install_and_feed({}, decision);
  witness_.after_install(run_->directory, {}, decision);
}

void Server::plant_in_command(Queued& queued) {
  if (plant_ == Plant::kDoubleGrantOnRetry) {
    auto* reserve = std::get_if<Reserve>(&queued.command);
    if (!reserve || planted_seen_.emplace(reserve->id.client, reserve->id.operation).second) return;
    queued.asked = std::make_shared<const Command>(queued.command);
    reserve->id.operation = ++planted_number_;
  }
  if (plant_ == Plant::kStaleIncarnationAccepted)
    std::visit(
        [&](auto& command) {
          using C = std::decay_t<decltype(command)>;
          if constexpr (!std::is_same_v<C, LinkUp>)
            if (Caller* caller = caller_in(command))
              *caller = caller_of(run_->directory, caller->session);
        },
        queued.command);
  if (plant_ == Plant::kReadBeforeImport)  // the word of the importer is lost, and not missed
    if (auto* import = std::get_if<ImportPool>(&queued.command)) import->life_name = "planted";
  if (plant_ == Plant::kLateProofBelieved)
    if (auto* open = std::get_if<OpenWorker>(&queued.command))
      open->proven_at = SessionId(UINT64_MAX);
  if (plant_ == Plant::kGrantPastBudget)
    if (auto* pool = std::get_if<RegisterPool>(&queued.command)) {
      pool->spec.capacity_bytes *= 2;
      pool->spec.budget_bytes *= 2;
    }
}

void Server::plant_in_decision(std::span<const Command> commands, Decision& decision) {
  if (plant_ == Plant::kEpochNotRaised && std::holds_alternative<Restart>(commands.front()) &&
      run_->number > 1)
    std::erase_if(decision.mutations,
                  [](const Mutation& m) { return m.key.kind == RecordKind::kMeta; });
  if (plant_ == Plant::kAcquireTakesNoLease)
    std::erase_if(decision.mutations, [&](const Mutation& m) {
      return m.key.kind == RecordKind::kLease && std::holds_alternative<Lease>(m.value) &&
             !run_->directory.find<Lease>(LeaseId(m.key.first));
    });
  plant_in_room(commands, decision);
  plant_in_sharing(commands, decision);
}

// ---- What makes room
// ---------------------------------------------------------------------------------------------

void Server::plant_in_room(std::span<const Command> commands, Decision& decision) {
  const Directory& directory = run_->directory;
  std::vector<Mutation>& mutations = decision.mutations;
  if (plant_ == Plant::kDrainNotHidden && any_is<Drain>(commands))
    std::erase_if(mutations, [](const Mutation& m) {
      const auto* pool = record_if<Pool>(m.value);
      return pool && pool->state == PoolState::kDraining;
    });
  if (any_is<EvictNamespace>(commands))
    for (Mutation& mutation : mutations)
      if (auto* ns = record_if<Namespace>(mutation.value)) {
        if (plant_ == Plant::kNamespaceNotHidden)
          ns->evicted_below = directory.find<Namespace>(ns->id)->evicted_below;
        if (plant_ == Plant::kNamespaceEvictsNewer && ns->evicted_below.valid())
          ns->evicted_below = ReplicaId(ns->evicted_below.value() + 20);
      }
  if (plant_ == Plant::kHardPinsPastLow)
    for (Mutation& mutation : mutations)
      if (auto* pin = std::get_if<Pin>(&mutation.value)) *pin = {pin->replica, PinKind::kHard, {}};
  if (plant_ == Plant::kPinOnReserved && any_is<PinChunks>(commands))
    if (const auto& open = directory.reservations(); !open.empty()) {
      const Reservation& first = open.begin()->second;
      mutations.push_back(put_of(Pin{first.replica_of(first.items.front()), PinKind::kHard, {}}));
    }
  const auto retire = [&](Replica replica, Why why) {
    replica.state = ReplicaState::kRetiring;
    replica.why = why;
    mutations.push_back(put_of(replica));
  };
  if (plant_ == Plant::kNamespaceEvictsOthers)
    if (const auto* run = std::get_if<RunJob>(&commands.front()))
      if (const Job* job = directory.find<Job>(run->job);
          job && job->kind == JobKind::kEvictNamespace)
        if (const auto other = planted_victim([&](const ReplicaSlot& slot) {
              return slot.replica.key.namespace_id() != job->namespace_id &&
                     !directory.find<Pin>(slot.replica.id);
            }))
          retire(*other, Why::kNamespaceEvicted);
  if (plant_ == Plant::kEvictIgnoresPins && commands.size() == 1)
    if (const auto* evict = std::get_if<Evict>(&commands.front()))
      for (const ReplicaId id : evict->replicas)
        if (directory.find<Pin>(id) && mutations.empty()) {
          retire(*directory.find<Replica>(id), Why::kEvicted);
          mutations.push_back({RecordTraits<Pin>::key(id), Forgotten{}});
        }
}

// The first READY replica that is meant.
std::optional<Replica> Server::planted_victim(
    const std::function<bool(const ReplicaSlot&)>& is_meant) const {
  const Directory& directory = run_->directory;
  for (const auto& [id, entry] : directory.pools())
    for (uint32_t slot = entry.head; slot != ReplicaTable::kNone;
         slot = directory.replicas().at(slot).pool_next)
      if (const ReplicaSlot& at = directory.replicas().at(slot);
          at.replica.state == ReplicaState::kReady && is_meant(at))
        return at.replica;
  return std::nullopt;
}

void Server::plant_in_slice(std::optional<MakeRoom>& slice) {
  const Directory& directory = run_->directory;
  const auto is_free = [&](const ReplicaSlot& at) {
    return at.lease_count == 0 && !directory.find<Pin>(at.replica.id);
  };
  if (!slice) {
    if (plant_ != Plant::kEvictBelowHigh && plant_ != Plant::kRetiringCountsAsHeld) return;
    const auto victim = planted_victim([&](const ReplicaSlot& at) {
      const PoolUsage& usage = directory.find_pool(at.replica.pool)->usage;
      return is_free(at) && (plant_ == Plant::kEvictBelowHigh || usage.retiring_replicas > 0);
    });
    if (victim) slice = MakeRoom{victim->pool, {victim->id}, Why::kMadeRoom, {}};
    return;
  }
  if (slice->replicas.empty()) return;
  const auto replace = [&](auto is_meant) {
    for (uint32_t slot = directory.find_pool(slice->pool)->head; slot != ReplicaTable::kNone;
         slot = directory.replicas().at(slot).pool_next)
      if (is_meant(directory.replicas().at(slot)))
        slice->replicas.front() = directory.replicas().at(slot).replica.id;
  };
  if (plant_ == Plant::kEvictLeased)
    replace([](const ReplicaSlot& at) {
      return at.lease_count > 0 && at.replica.state == ReplicaState::kReady;
    });
  if (plant_ == Plant::kEvictPinned)
    replace([&](const ReplicaSlot& at) {
      const Pin* pin = directory.find<Pin>(at.replica.id);
      return pin && at.lease_count == 0 &&
             (pin->kind == PinKind::kHard || pin->expires > run_->clock.now());
    });
  if (plant_ == Plant::kEvictNotReady)
    replace([](const ReplicaSlot& at) { return at.replica.state == ReplicaState::kReserved; });
  if (plant_ != Plant::kEvictTooMuch && plant_ != Plant::kSliceUnbounded) return;
  const size_t most = plant_ == Plant::kSliceUnbounded ? SIZE_MAX : weather_.evictor.slice_replicas;
  for (uint32_t slot = directory.find_pool(slice->pool)->head;
       slot != ReplicaTable::kNone && slice->replicas.size() < most;
       slot = directory.replicas().at(slot).pool_next) {
    const ReplicaSlot& at = directory.replicas().at(slot);
    const bool is_chosen =
        std::count(slice->replicas.begin(), slice->replicas.end(), at.replica.id);
    if (at.replica.state == ReplicaState::kReady && is_free(at) && !is_chosen)
      slice->replicas.push_back(at.replica.id);
  }
}

// ---- Restarts and replies
// ----------------------------------------------------------------------------------------

void Server::plant_in_load(Directory& fresh) {
  if (plant_ == Plant::kReadersNotAwaited) plant_readers_not_awaited(fresh);
  if (plant_ == Plant::kSettingForgotten && fresh.find<EvictionSetting>({}))
    fresh.install({{RecordTraits<EvictionSetting>::key({}), Forgotten{}}});
  if (plant_ == Plant::kPinForgotten) {
    std::vector<Mutation> forgotten;
    for (const auto& [id, pin] : fresh.pins())
      forgotten.push_back({RecordTraits<Pin>::key(id), Forgotten{}});
    fresh.install(forgotten);
  }
  if (plant_ == Plant::kDrainForgotten) {
    std::vector<Mutation> open;
    for (const auto& [id, entry] : fresh.pools())
      if (entry.pool.state == PoolState::kDraining) {
        Pool pool = entry.pool;
        pool.state = PoolState::kOpen;
        open.push_back(put_of(pool));
      }
    fresh.install(open);
  }
  if (plant_ != Plant::kEvictionForgotten) return;
  std::vector<Mutation> back;
  for (const auto& [id, entry] : fresh.pools())
    for (const ReplicaId replica : entry.retiring) {
      Replica ready = *fresh.find<Replica>(replica);
      if (ready.why != Why::kEvicted) continue;
      ready.state = ReplicaState::kReady;
      ready.why = Why::kNone;
      back.push_back(put_of(ready));
    }
  fresh.install(back);
}

void Server::plant_lost_commit(const std::vector<Queued>& batch, const Decision& decision) {
  for (size_t i = 0; i < batch.size(); ++i)
    if (batch[i].reply) {
      witness_.reply_left(nullptr, decision.outcomes[i]);
      batch[i].reply(decision.outcomes[i]);
    }
}

void Server::plant_after(const Command& command, const Result<Outcome>& outcome) {
  if (plant_ == Plant::kNone || !outcome) return;
  const Directory& directory = run_->directory;
  if (plant_ == Plant::kFreeOnTimeout && std::holds_alternative<Tick>(command)) {
    std::vector<Mutation> freed;
    for (const auto& [first, reservation] : directory.reservations()) {
      if (!reservation.quarantined) continue;
      for (const ReservedItem& item : reservation.items)
        freed.push_back({RecordTraits<Replica>::key(reservation.replica_of(item)), Forgotten{}});
      freed.push_back({RecordTraits<Reservation>::key(first), Forgotten{}});
    }
    plant_mutations(command, std::move(freed));
  }
  if (plant_ == Plant::kPinEndsEarly && std::holds_alternative<Tick>(command))
    for (const auto& [id, pin] : directory.pins())
      if (pin.kind == PinKind::kSoft && pin.expires > run_->clock.now())
        return plant_mutations(command, {{RecordTraits<Pin>::key(id), Forgotten{}}});
  if (plant_ == Plant::kUndrainRevives && std::holds_alternative<Undrain>(command)) {
    std::vector<Mutation> revived;
    for (const auto& [id, entry] : directory.pools())
      for (const ReplicaId replica : entry.retiring) {
        Replica ready = *directory.find<Replica>(replica);
        ready.state = ReplicaState::kReady;
        ready.why = Why::kNone;
        revived.push_back(put_of(ready));
      }
    plant_mutations(command, std::move(revived));
  }
  if (plant_ == Plant::kSilentMeansDead && std::holds_alternative<Tick>(command))
    for (const auto& [id, presence] : directory.presence())
      if (presence.silent) plant_command(FenceByOperator{id, "", "planted: it is silent", false});
  // Lawful, and in a hurry: after a restart, before its importers are there again.
  if (const auto* up = std::get_if<LinkUp>(&command);
      up && plant_ == Plant::kReadersNotAwaited && run_->number > 1 &&
      planted_seen_.emplace(up->caller.session, run_->number).second)
    plant_command(Evict{ready_of(directory, up->caller.session)});
  if (const auto* renew = std::get_if<Renew>(&command);
      renew && plant_ == Plant::kLeaseForgottenOnRenew)
    for (const LeaseId lease : renew->leases)
      if (directory.find<Lease>(lease))
        plant_mutations(command, {{RecordTraits<Lease>::key(lease), Forgotten{}}});
  if (const auto* reserve = std::get_if<Reserve>(&command);
      reserve && plant_ == Plant::kReadyBeforeWritten) {
    const auto& granted = std::get<Reserved>(*outcome);
    if (granted.first.valid()) {
      Commit commit{reserve->id, {granted.first}, {0}, {}, false};
      commit.id.operation = ++planted_number_;
      plant_command(commit);
    }
  }
  if (const auto* opened = std::get_if<WorkerOpened>(&*outcome);
      opened && plant_ == Plant::kOrphanReleasedEarly)
    for (const OrphanPool& orphan : opened->orphan_pools)
      plant_command(ReleaseOrphans{{opened->session, opened->incarnation}, {orphan.pool}});
  if (const auto* begun = std::get_if<ReattachBegun>(&*outcome);
      begun && plant_ == Plant::kReattachJudgesBeforeMarker)
    plant_command(EndReattach{{std::get<BeginReattach>(command).session, begun->incarnation}, {}});
  if (const auto* release = std::get_if<Release>(&command);
      release && plant_ == Plant::kReleaseOtherSessionsLease)
    for (const auto& [id, lease] : directory.leases())
      if (lease.session != release->client) {
        plant_command(Release{worker_of_client(directory, lease.session), lease.session, {id}});
        break;
      }
}

void Server::plant_after(const Ask& ask) {
  const Directory& directory = run_->directory;
  if (plant_ == Plant::kAbortFreesUnderWriter && ask.kind == Ask::Kind::kCancel)
    plant_command(Abort{caller_of(directory, ask.worker), ask.client, ask.replicas});
  if (plant_ == Plant::kRevokeWithoutAsking && ask.kind == Ask::Kind::kRevoke)
    plant_command(Release{caller_of(directory, ask.worker), ask.client, {ask.lease}});
}

}  // namespace berth::sim
