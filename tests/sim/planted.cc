// What each planted bug of the server does: at the boundary of decide(), never inside the product.
#include "tests/sim/planted.h"

#include <type_traits>

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

}  // namespace

void Server::plant_command(Command command) {
  run_->queue.push_back(Queued{std::move(command), [](const Result<Outcome>&) {}, {}, 0, {}});
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
  install(run_->directory, decision);
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
}

void Server::plant_in_load(Directory& fresh) {
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
      witness_.reply_left(decision.outcomes[i]);
      batch[i].reply(decision.outcomes[i]);
    }
}

void Server::plant_after(const Queued& queued, const Result<Outcome>& outcome) {
  if (plant_ == Plant::kNone || !outcome) return;
  const Directory& directory = run_->directory;
  const Command& command = queued.command;
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
  if (plant_ == Plant::kSilentMeansDead && std::holds_alternative<Tick>(command))
    for (const auto& [id, presence] : directory.presence())
      if (presence.silent) plant_command(FenceByOperator{id, "", "planted: it is silent", false});
  if (const auto* renew = std::get_if<Renew>(&command);
      renew && plant_ == Plant::kLeaseForgottenOnRenew)
    for (const LeaseId lease : renew->leases)
      if (directory.find<Lease>(lease))
        plant_mutations(command, {{RecordTraits<Lease>::key(lease), Forgotten{}}});
  if (const auto* reserve = std::get_if<Reserve>(&command);
      reserve && plant_ == Plant::kReadyBeforeWritten) {
    const auto& granted = std::get<Reserved>(*outcome);
    if (granted.first.valid()) {
      Commit commit{reserve->id, {granted.first}, {0}};
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
