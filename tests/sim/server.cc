// The server's process: its loop (as server/sequencer/sequencer.cc has it), its start and its ends.
#include "tests/sim/server.h"

#include <algorithm>

#include "common/check.h"
#include "common/text.h"
#include "tests/sim/server_run.h"
#include "tests/sim/witness.h"

namespace berth::sim {
namespace {

constexpr int64_t kTickEvery = 100;
constexpr int64_t kReopenEvery = 1000;
constexpr Duration kStepMax = milliseconds(500);

}  // namespace

Server::Run::Run(MemoryDisk& disk, const Weather& weather, Duration step_max)
    : evictor(weather.evictor, weather.directory),
      store(disk, weather.durability),
      clock(Time{}, step_max) {}

Server::Server(Schedule& schedule, Random& random, const Weather& weather, Judge& judge,
               Witness& witness, Plant plant)
    : schedule_(schedule),
      random_(random),
      weather_(weather),
      judge_(judge),
      witness_(witness),
      plant_(plant) {}

Server::~Server() = default;

bool Server::is_degraded() const { return run_ && !run_->degraded.empty(); }
const Directory& Server::directory() const { return run_->directory; }
Time Server::now() const { return run_->clock.now(); }
std::string Server::policies() const {
  std::string text = "policies:";
  for (const policy::PolicyRow& row : run_->evictor.rows())
    text += " [pool " + to_text(row.pool) + ", namespace " + to_text(row.namespace_id) + ": " +
            std::to_string(row.held) + " of " + std::string(name_of(row.kind)) + "]";
  const policy::EvictorStats& stats = run_->evictor.stats();
  return text + " slices " + std::to_string(stats.slices) + ", nothing_evictable " +
         std::to_string(stats.nothing_evictable) +
         (run_->evictor.has_work() ? ", has work" : ", has no work");
}

// ---- The process
// -------------------------------------------------------------------------------------------

void Server::start() {
  if (run_) return;
  judge_.trace([] { return "server: starts"; });
  const Duration step_max = plant_ == Plant::kStallAges ? seconds(3600) : kStepMax;
  run_ = std::make_unique<Run>(disk_, weather_, step_max);
  run_->number = ++runs_;
  if (const Result<> opened = run_->store.reopen(); !opened || !load_and_restart()) {
    run_.reset();  // the service manager tries again
    return;
  }
  tick_later();
  flush_later();
}

void Server::tick_later() {
  schedule_.after(kTickEvery, [this, number = run_->number] {
    if (!run_ || run_->number != number) return;
    scheduling_.run([this, number] {
      if (run_ && run_->number == number) turn();
    });
    tick_later();
  });
}

void Server::flush_later() {
  if (weather_.durability != Durability::kInterval) return;
  schedule_.after(weather_.flush_every, [this, number = run_->number] {
    if (!run_ || run_->number != number) return;
    scheduling_.run([this, number] {
      if (!run_ || run_->number != number || !run_->degraded.empty()) return;
      if (const Result<> flushed = run_->store.flush(); !flushed) degrade(flushed.error());
    });
    flush_later();
  });
}

void Server::kill() {
  if (!run_) return;
  judge_.trace([] { return "server: killed"; });
  witness_.server_stopped(run_->directory, Witness::Loss::kNothing);
  end_run();
}

void Server::cut_power() {
  if (!run_) return;
  judge_.trace([] { return "server: loses power"; });
  // What a failed commit left may have been read back, and is still not flushed.
  const bool loses = weather_.durability != Durability::kSync || !run_->degraded.empty();
  witness_.server_stopped(run_->directory,
                          loses ? Witness::Loss::kUnsynced : Witness::Loss::kNothing);
  planted_loss_ = loses;
  disk_.power_cut();
  end_run();
}

// Connections of a dead process are reset.
void Server::end_run() {
  const std::unique_ptr<Run> over = std::move(run_);
  scheduling_.forget_waiting();
  for (const auto& [stream, end] : over->links) stream->cut(0, random_.between(0, 50));
  for (const auto& [stream, end] : over->reattaches) stream->cut(0, random_.between(0, 50));
}

// ---- The queue
// ---------------------------------------------------------------------------------------------

void Server::submit(Command command, Reply reply) {
  scheduling_.run([this, command = std::move(command), reply = std::move(reply)]() mutable {
    if (run_)
      submit(Queued{std::move(command), std::move(reply)});
    else
      reply(refuse(Reason::kUnavailable, "the server is down"));
  });
}

void Server::submit(Queued queued) {
  plant_in_command(queued);
  if (!run_->degraded.empty()) return queued.reply(refuse(Reason::kStoreDegraded, run_->degraded));
  run_->queue.push_back(std::move(queued));
  turn_soon();
}

void Server::turn_soon() {
  if (std::exchange(run_->turn_is_due, true)) return;
  schedule_.after(random_.between(0, 3), [this, number = run_->number] {
    scheduling_.run([this, number] {
      if (!run_ || run_->number != number) return;
      run_->turn_is_due = false;
      turn();
    });
  });
}

// ---- The loop
// ----------------------------------------------------------------------------------------------

void Server::turn() {
  advance_time();
  if (!run_->degraded.empty()) return try_to_recover();
  if (schedule_.now() >= run_->next_tick) {
    run_->next_tick = schedule_.now() + kTickEvery;
    run_->jobs_due = run_->jobs_due || !run_->directory.jobs().empty();
    run_own(Tick{});
  }
  if (is_usable()) run_queued();
  if (is_usable()) run_job_slice();
  if (is_usable()) run_eviction_slice();
  if (is_usable() && (!run_->queue.empty() || run_->jobs_due || run_->evictor.has_work()))
    turn_soon();
}

bool Server::is_usable() const { return run_ && run_->degraded.empty() && !judge_.failed(); }

void Server::advance_time() {
  const Time before = run_->clock.now();
  const Time now = run_->clock.advance(schedule_.now());
  judge_.expect(now - before <= kStepMax, [&] {
    return "logical time moved by " + std::to_string((now - before).millis) +
           " ms at once: a stall of the server aged everybody";
  });
}

void Server::run_queued() {
  std::vector<Queued> batch;
  while (!run_->queue.empty() && batch.size() < weather_.batch_commands) {
    batch.push_back(std::move(run_->queue.front()));
    run_->queue.pop_front();
  }
  if (batch.empty()) return;
  const Result<Decision> decision = carry_out(batch);
  if (!decision) {
    for (const Queued& queued : batch) queued.reply(tl::unexpected(decision.error()));
    return degrade(decision.error());
  }
  for (size_t i = 0; i < batch.size() && run_; ++i) {
    witness_.reply_left(&run_->directory, decision->outcomes[i]);
    batch[i].reply(decision->outcomes[i]);
    if (!run_) return;
    plant_after(batch[i].command, decision->outcomes[i]);
  }
  announce(*decision);
  if (!run_->directory.jobs().empty()) run_->jobs_due = true;
}

std::optional<Outcome> Server::run_own(const Command& command) {
  const Result<Decision> decision = carry_out({Queued{command}});
  if (!decision) {
    degrade(decision.error());
    return std::nullopt;
  }
  const Result<Outcome>& outcome = decision->outcomes.front();
  plant_after(command, outcome);
  announce(*decision);
  judge_.expect(outcome.has_value(), [&] {
    return "a command of the server's own was refused: " + outcome.error().message;
  });
  if (!outcome) return std::nullopt;
  return *outcome;
}

void Server::run_job_slice() {
  if (!run_->jobs_due) return;
  const auto next = run_->directory.jobs().upper_bound(run_->job_cursor);
  if (next == run_->directory.jobs().end()) {
    run_->job_cursor = JobId();
    run_->jobs_due = std::exchange(run_->jobs_have_more, false);
    return;
  }
  run_->job_cursor = next->first;
  if (plant_ == Plant::kDrainNeverEnds && next->second.kind == JobKind::kDrainPool) return;
  const std::optional<Outcome> outcome = run_own(RunJob{run_->job_cursor});
  if (outcome && std::get<JobRan>(*outcome).more) run_->jobs_have_more = true;
}

void Server::run_eviction_slice() {
  if (plant_ == Plant::kMakesNoRoom) return;
  std::optional<MakeRoom> slice = run_->evictor.next(run_->directory, run_->clock.now());
  plant_in_slice(slice);
  if (!slice) {
    if (!run_->evictor.has_work())
      witness_.room().evictor_rests(run_->directory, run_->evictor.stats().nothing_evictable);
    return;
  }
  const std::optional<Outcome> outcome = run_own(*slice);
  if (!outcome) return;
  run_->evictor.answered(run_->directory, *slice, std::get<PerItem>(*outcome), run_->clock.now());
  if (random_.chance(50)) witness_.room().check_policies(run_->directory, run_->evictor);
}

Result<Decision> Server::carry_out(const std::vector<Queued>& batch) {
  std::vector<Command> commands;
  for (const Queued& queued : batch) commands.push_back(queued.command);
  const Time now = run_->clock.now();
  Decision decision = decide(run_->directory, config(), commands, now);
  for (size_t i = 0; i < batch.size(); ++i) check_incarnation(batch[i], decision.outcomes[i]);
  plant_in_decision(commands, decision);
  judge_.digest(decision.mutations.size(), decision.asks.size());
  if (decision.is_durable) {
    const bool sync = decision.sync && plant_ != Plant::kIdentityNotSynced;
    if (const Result<> committed = run_->store.commit(decision.mutations, now, sync); !committed) {
      judge_.trace([] { return "server: a commit fails"; });
      witness_.commit_failed(run_->directory, commands, decision);
      if (plant_ != Plant::kLostCommitAcked) return tl::unexpected(committed.error());
      plant_lost_commit(batch, decision);
      return tl::unexpected(committed.error());
    }
  }
  witness_.before_install(run_->directory, config(), commands, decision, now);
  check_answers(batch, commands, decision);
  install_and_feed(commands, decision);
  witness_.after_install(run_->directory, commands, decision);
  if (decision.is_durable && random_.chance(20)) check_recovery();
  return decision;
}

void Server::install_and_feed(std::span<const Command> commands, const Decision& decision) {
  if (decision.mutations.empty()) return;
  run_->evictor.before_install(run_->directory, decision.mutations);
  install(run_->directory, decision);
  if (plant_ == Plant::kPolicyNotFed && random_.chance(50)) return;
  run_->evictor.after_install(run_->directory, commands, decision.outcomes, decision.mutations);
}

// Answers are compared under the numbers that the sender used.
void Server::check_answers(const std::vector<Queued>& batch, const std::vector<Command>& commands,
                           const Decision& decision) {
  if (plant_ != Plant::kDoubleGrantOnRetry) return witness_.check_answers(commands, decision);
  std::vector<Command> asked = commands;
  for (size_t i = 0; i < batch.size(); ++i)
    if (batch[i].asked) asked[i] = *batch[i].asked;
  witness_.check_answers(asked, decision);
}

// Who speaks under an incarnation that is over must not be heard.
void Server::check_incarnation(const Queued& queued, const Result<Outcome>& outcome) {
  if (!queued.sender.valid() || !outcome) return;
  if (std::holds_alternative<LinkDown>(queued.command) ||
      std::holds_alternative<OpenNamespace>(queued.command))
    return;  // these speak for nobody
  const Session* session = run_->directory.find<Session>(queued.sender);
  judge_.expect(!session || session->incarnation <= queued.sent_under, [&] {
    return "a command of a Link of incarnation " + std::to_string(queued.sent_under) +
           " was carried out at incarnation " + std::to_string(session->incarnation);
  });
}

void Server::check_recovery() {
  Directory rebuilt;
  const auto loaded =
      run_->store.load([&](std::vector<Mutation>&& batch) { rebuilt.install(batch); }, {});
  if (loaded) witness_.check_recovery(run_->directory, rebuilt);
}

void Server::announce(const Decision& decision) {
  for (const Ask& ask : decision.asks) {
    if (!run_) return;
    if (plant_ == Plant::kReclaimNeverAsked && ask.kind == Ask::Kind::kReclaim) continue;
    run_->link_table.deliver(ask);
    plant_after(ask);
  }
}

// ---- Epochs and trouble
// -----------------------------------------------------------------------------------

Result<> Server::load_and_restart() {
  Directory fresh;
  const Result<Store::Loaded> loaded =
      run_->store.load([&](std::vector<Mutation>&& batch) { fresh.install(batch); }, {});
  if (!loaded) return tl::unexpected(loaded.error());
  if (loaded->moved) witness_.store_moved();
  plant_in_load(fresh);
  witness_.loaded(fresh);
  const Duration step_max = plant_ == Plant::kStallAges ? seconds(3600) : kStepMax;
  run_->clock = LogicalClock(std::max(run_->clock.now(), loaded->now), step_max);
  advance_time();
  const Command restart = Restart{random_.id128(), loaded->moved};
  Decision decision = decide(fresh, config(), {&restart, 1}, run_->clock.now());
  if (!decision.outcomes.front()) return tl::unexpected(decision.outcomes.front().error());
  plant_in_decision({&restart, 1}, decision);
  if (const Result<> committed = run_->store.commit(decision.mutations, run_->clock.now(), true);
      !committed) {
    witness_.commit_failed(fresh, {&restart, 1}, decision);
    return committed;
  }
  install(fresh, decision);
  std::swap(run_->directory, fresh);
  run_->evictor.start(run_->directory);
  run_->jobs_due = !run_->directory.jobs().empty();
  run_->job_cursor = JobId();
  run_->jobs_have_more = false;
  witness_.restarted(run_->directory);
  witness_.room().evictor_started(run_->directory, run_->evictor.stats().nothing_evictable);
  witness_.room().check_policies(run_->directory, run_->evictor);
  judge_.trace([&] { return "server: epoch " + std::to_string(run_->directory.meta().epoch); });
  return {};
}

void Server::degrade(const Error& why) {
  if (!run_->degraded.empty()) return;
  judge_.trace([&] { return "server: degraded: " + why.message; });
  run_->degraded = why.message;
  run_->next_reopen = schedule_.now() + kReopenEvery;
  for (const Queued& queued : std::exchange(run_->queue, {}))
    queued.reply(refuse(Reason::kStoreDegraded, why.message));
}

void Server::try_to_recover() {
  if (schedule_.now() < run_->next_reopen) return;
  run_->next_reopen = schedule_.now() + kReopenEvery;
  if (!run_->store.reopen() || !load_and_restart()) return;
  run_->degraded.clear();
  run_->link_table.end_all({Reason::kUnavailable, "the server reloaded its store; re-attach"});
}

}  // namespace berth::sim
