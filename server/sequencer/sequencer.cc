#include "server/sequencer/sequencer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/check.h"
#include "common/log.h"
#include "server/directory/invariants.h"

namespace berth {
namespace {

// A command of this weight is worth a commit of its own; lighter ones that come together share one.
constexpr size_t kBatchWeightMin = 16;
// Light commands that go through the queue after several were there at once.
constexpr uint32_t kCompanyCommands = 256;
// A thread that turns for itself turns for those who came meanwhile, too, but not for ever: it is
// one of gRPC's, which serve others.
constexpr int kRoundsForOthersMax = 4;

// What engines do all the time. These give and take no identity, so in `interval` their commit does
// not wait for the disk.
bool is_everyday(const Command& command) {
  return std::holds_alternative<Reserve>(command) || std::holds_alternative<Commit>(command) ||
         std::holds_alternative<Abort>(command) || std::holds_alternative<Acquire>(command) ||
         std::holds_alternative<Renew>(command) || std::holds_alternative<Release>(command);
}

}  // namespace

Sequencer::Sequencer(SequencerConfig config, std::unique_ptr<Store> store, const Clock& clock)
    : config_(std::move(config)),
      store_(std::move(store)),
      clock_(clock),
      events_(config_.events_max),
      retired_(config_.retired_history_max),
      evictor_(config_.evictor, config_.directory),
      logical_clock_(Time{}, config_.max_step) {}

Sequencer::~Sequencer() { stop(); }

// ---- Start and stop
// -----------------------------------------------------------------------------------------

Result<> Sequencer::start(StoreId fresh_store_id, SequencerListener* listener,
                          const std::function<void(uint64_t)>& progress) {
  fresh_store_id_ = fresh_store_id;
  listener_ = listener;
  Directory fresh;
  const Result<Decision> restarted = load_and_restart(fresh, progress);
  if (!restarted) return tl::unexpected(restarted.error());
  if (config_.durability == Durability::kInterval)
    flusher_ = std::make_unique<Flusher>(*store_, config_.flush_interval);
  enter_epoch(fresh, *restarted);
  thread_ = std::thread([this] { run(); });
  return {};
}

void Sequencer::stop() {
  {
    const std::lock_guard lock(queue_mutex_);
    stopping_ = true;
  }
  queue_ready_.notify_all();
  if (thread_.joinable()) thread_.join();
  flusher_.reset();
  if (!store_) return;
  if (!is_degraded())
    if (const Result<> flushed = store_->flush(); !flushed)
      log::error("store_flush_failed", {{"why", flushed.error().message}});
  store_.reset();
}

// ---- The queue
// ----------------------------------------------------------------------------------------------

void Sequencer::submit(Command command, Reply done) {
  std::optional<Error> refusal;
  {
    const std::lock_guard lock(queue_mutex_);
    if (stopping_) {
      refusal = Error{Reason::kUnavailable, "the server is stopping"};
    } else if (!degraded_reason_.empty()) {
      refusal = Error{Reason::kStoreDegraded, degraded_reason_};
    } else if (queue_.size() >= config_.queue_commands_max) {
      ++stats_.queue_full;
      refusal =
          Error{Reason::kQueueFull, std::to_string(queue_.size()) + " commands are queued already"};
    } else if (may_turn_here(command)) {
      is_turning_ = true;
    } else {
      queue_.push_back({std::move(command), std::move(done)});
      // Whoever is in a turn looks at the queue when it ends.
      if (!is_turning_) queue_ready_.notify_one();
      return;
    }
  }
  if (refusal) return done(tl::unexpected(*std::move(refusal)));
  turn_here(std::move(command), std::move(done));
}

bool Sequencer::may_turn_here(const Command& command) {
  const bool is_alone = !is_turning_ && !turn_is_wanted_ && !own_work_due_ && queue_.empty();
  if (!is_alone || config_.durability == Durability::kSync) return false;
  if (!is_everyday(command)) return false;
  if (weight_of(command) >= kBatchWeightMin) return true;
  return company_left_ == 0 || --company_left_ == 0;
}

void Sequencer::turn_here(Command command, Reply done) {
  Batch batch;
  batch.commands.push_back(std::move(command));
  batch.replies.push_back(std::move(done));
  advance_time();
  const std::optional<Error> trouble = flusher_ ? flusher_->take_error() : std::nullopt;
  if (trouble)
    degrade(*trouble, batch.replies);
  else
    run_batch(batch);
  for (int round = 0; round < kRoundsForOthersMax && !is_degraded(); ++round) {
    const Batch others = take_batch(is_everyday);
    if (others.commands.empty()) break;
    run_batch(others);
  }
  const bool is_due = has_own_work();
  const std::lock_guard lock(queue_mutex_);
  is_turning_ = false;
  own_work_due_ = is_due;
  if (!queue_.empty() && is_everyday(queue_.front().command)) company_left_ = kCompanyCommands;
  if (!queue_.empty() || own_work_due_ || turn_is_wanted_ || stopping_) queue_ready_.notify_one();
}

Sequencer::Batch Sequencer::take_batch(bool (*may_take)(const Command&)) {
  Batch batch;
  size_t weight = 0;
  const std::lock_guard lock(queue_mutex_);
  while (!queue_.empty() && batch.commands.size() < config_.batch_commands_max) {
    if (!may_take(queue_.front().command)) break;
    weight += weight_of(queue_.front().command);
    // One command alone may be as heavy as it likes: its own bounds were checked at the door.
    if (!batch.commands.empty() && weight > config_.batch_records_max) break;
    batch.commands.push_back(std::move(queue_.front().command));
    batch.replies.push_back(std::move(queue_.front().done));
    queue_.pop_front();
  }
  // Heartbeats often come together and say nothing about the load.
  if (std::count_if(batch.commands.begin(), batch.commands.end(), is_everyday) > 1)
    company_left_ = kCompanyCommands;
  return batch;
}

SequencerStats Sequencer::stats() const {
  const std::lock_guard lock(queue_mutex_);
  SequencerStats stats = stats_;
  stats.queued = queue_.size();
  return stats;
}

std::string Sequencer::degraded_reason() const {
  const std::lock_guard lock(queue_mutex_);
  return degraded_reason_;
}

// ---- The loop
// -----------------------------------------------------------------------------------------------

void Sequencer::run() {
  while (wait_for_work() == Wake::kWork) turn();
}

bool Sequencer::has_own_work() const {
  return !is_degraded() && (tick_has_more_ || jobs_due_ || evictor_.has_work());
}

// Between two turns of this thread, others may have theirs.
Sequencer::Wake Sequencer::wait_for_work() {
  const bool is_due = has_own_work();
  std::unique_lock lock(queue_mutex_);
  own_work_due_ = is_due;
  is_turning_ = false;
  queue_ready_.wait_for(lock, std::chrono::milliseconds(config_.tick_interval.millis), [this] {
    return !is_turning_ && (stopping_ || !queue_.empty() || own_work_due_);
  });
  turn_is_wanted_ = true;
  queue_ready_.wait(lock, [this] { return !is_turning_; });
  turn_is_wanted_ = false;
  is_turning_ = true;
  return stopping_ && queue_.empty() ? Wake::kStop : Wake::kWork;
}

void Sequencer::turn() {
  turns_.fetch_add(1, std::memory_order_relaxed);
  advance_time();
  if (flusher_)
    if (const std::optional<Error> error = flusher_->take_error()) degrade(*error, {});
  if (is_degraded()) {
    try_to_recover();
    return;
  }
  run_tick();
  run_queued();
  run_job_slice();
  run_eviction_slice();
}

void Sequencer::advance_time() {
  now_millis_.store(logical_clock_.advance(clock_.monotonic_millis()).millis,
                    std::memory_order_relaxed);
  if (logical_clock_.stall() == Duration{}) return;
  const std::lock_guard lock(queue_mutex_);
  stats_.stall_millis += static_cast<uint64_t>(logical_clock_.stall().millis);
}

void Sequencer::run_queued() {
  if (is_degraded()) return;
  const Batch batch = take_batch([](const Command&) { return true; });
  if (!batch.commands.empty()) run_batch(batch);
}

void Sequencer::run_batch(const Batch& batch) {
  const Result<Decision> decision = carry_out(batch.commands);
  if (!decision) return degrade(decision.error(), batch.replies);
  for (size_t i = 0; i < batch.replies.size(); ++i) batch.replies[i](decision->outcomes[i]);
  announce(*decision);
  if (!directory_.jobs().empty()) jobs_due_ = true;
}

void Sequencer::run_tick() {
  const int64_t now = clock_.monotonic_millis();
  if (!tick_has_more_ && now < next_tick_millis_) return;
  next_tick_millis_ = now + config_.tick_interval.millis;
  jobs_due_ = jobs_due_ || !directory_.jobs().empty();
  const std::optional<Outcome> outcome = run_own(Tick{});
  tick_has_more_ = outcome && std::get<Ticked>(*outcome).more;
  report_policies(now);
}

void Sequencer::run_job_slice() {
  if (is_degraded() || !jobs_due_) return;
  const auto next = directory_.jobs().upper_bound(job_cursor_);
  if (next == directory_.jobs().end()) {
    job_cursor_ = JobId();
    jobs_due_ = std::exchange(job_round_has_more_, false);
    return;
  }
  job_cursor_ = next->first;
  const std::optional<Outcome> outcome = run_own(RunJob{job_cursor_});
  if (outcome && std::get<JobRan>(*outcome).more) job_round_has_more_ = true;
}

// What a policy chooses is decided like any other command, so it may find that somebody began to
// read.
void Sequencer::run_eviction_slice() {
  if (is_degraded()) return;
  const int64_t started_nanos = clock_.monotonic_nanos();
  const std::optional<MakeRoom> slice = evictor_.next(directory_, logical_clock_.now());
  if (!slice) return;
  const std::optional<Outcome> outcome = run_own(*slice);
  if (!outcome) return;
  evictor_.answered(directory_, *slice, std::get<PerItem>(*outcome), logical_clock_.now());
  const auto micros = static_cast<uint64_t>((clock_.monotonic_nanos() - started_nanos) / 1000);
  const std::lock_guard lock(queue_mutex_);
  stats_.eviction = evictor_.stats();
  stats_.eviction_slice_micros_max = std::max(stats_.eviction_slice_micros_max, micros);
}

void Sequencer::report_policies(int64_t now) {
  if (now < next_report_millis_) return;
  next_report_millis_ = now + 1000;
  std::vector<policy::PolicyRow> rows = evictor_.rows();
  const uint64_t bytes = evictor_.memory_bytes();
  const std::lock_guard lock(queue_mutex_);
  policies_ = std::move(rows);
  stats_.eviction = evictor_.stats();
  stats_.eviction_memory_bytes = bytes;
}

std::vector<policy::PolicyRow> Sequencer::policies() const {
  const std::lock_guard lock(queue_mutex_);
  return policies_;
}

std::optional<Outcome> Sequencer::run_own(const Command& command) {
  const int64_t started_nanos = clock_.monotonic_nanos();
  Result<Decision> decision = carry_out({&command, 1});
  if (!decision) {
    degrade(decision.error(), {});
    return std::nullopt;
  }
  announce(*decision);
  {
    const auto micros = static_cast<uint64_t>((clock_.monotonic_nanos() - started_nanos) / 1000);
    const std::lock_guard lock(queue_mutex_);
    if (!decision->mutations.empty()) ++stats_.slices;
    stats_.slice_micros_max = std::max(stats_.slice_micros_max, micros);
    stats_.slice_records_max =
        std::max<uint64_t>(stats_.slice_records_max, decision->mutations.size());
  }
  BERTH_CHECK(decision->outcomes.front(), "the sequencer's own commands are never refused");
  return *std::move(decision->outcomes.front());
}

Result<Decision> Sequencer::carry_out(std::span<const Command> commands) {
  Decision decision = decide(directory_, config_.directory, commands, logical_clock_.now());
  if (decision.is_durable) {
    const Result<> committed =
        store_->commit(decision.mutations, logical_clock_.now(), decision.sync);
    if (!committed) return tl::unexpected(committed.error());
    if (flusher_) flusher_->note_commit();
  }
  if (!decision.mutations.empty()) {
    evictor_.before_install(directory_, decision.mutations);
    retired_.before_install(directory_, decision.mutations, logical_clock_.now());
    {
      const std::lock_guard lock(view_mutex_);
      install(directory_, decision);
    }
    evictor_.after_install(directory_, commands, decision.outcomes, decision.mutations);
  }
  count(decision);
  return decision;
}

void Sequencer::announce(const Decision& decision) {
  // A worker that has seen a later epoch than the store raises it in the middle of a run.
  if (const Epoch epoch = directory_.meta().epoch; epoch != events_.epoch())
    events_.begin_epoch(epoch);
  events_.append(decision.events, wall_clock_millis());
  if (!listener_) return;
  for (const Ask& ask : decision.asks) listener_->on_ask(ask);
}

void Sequencer::count(const Decision& decision) {
  const auto refused = std::count_if(decision.outcomes.begin(), decision.outcomes.end(),
                                     [](const Result<Outcome>& outcome) { return !outcome; });
  const std::lock_guard lock(queue_mutex_);
  stats_.commands += decision.outcomes.size();
  stats_.refused += static_cast<uint64_t>(refused);
  stats_.records += decision.mutations.size();
  ++stats_.batches;
}

// ---- Epochs and trouble
// -------------------------------------------------------------------------------------

Result<Decision> Sequencer::load_and_restart(Directory& fresh,
                                             const std::function<void(uint64_t)>& progress) {
  const Result<Store::Loaded> loaded =
      store_->load([&](std::vector<Mutation>&& batch) { fresh.install(batch); }, progress);
  if (!loaded) return tl::unexpected(loaded.error());
  if (const std::string broken = check_invariants(fresh); !broken.empty())
    return refuse(Reason::kStoreCorrupt,
                  "the store reads back as a directory that cannot be: " + broken);

  if (loaded->moved)
    log::warning("state_directory_copied",
                 {{"new_store", fresh_store_id_},
                  {"why", "a copy or a restored backup: it becomes another store"}});
  logical_clock_ = LogicalClock(std::max(logical_clock_.now(), loaded->now), config_.max_step);
  advance_time();
  const Command restart = Restart{fresh_store_id_, loaded->moved};
  Decision decision = decide(fresh, config_.directory, {&restart, 1}, logical_clock_.now());
  if (!decision.outcomes.front()) return tl::unexpected(decision.outcomes.front().error());
  if (const Result<> committed = store_->commit(decision.mutations, logical_clock_.now(), true);
      !committed)
    return tl::unexpected(committed.error());
  install(fresh, decision);
  return decision;
}

void Sequencer::enter_epoch(Directory& fresh, const Decision& restarted) {
  {
    const std::lock_guard lock(view_mutex_);
    std::swap(directory_, fresh);
  }
  evictor_.start(directory_);
  tick_has_more_ = false;
  job_cursor_ = JobId();
  job_round_has_more_ = false;
  jobs_due_ = !directory_.jobs().empty();
  if (flusher_) flusher_->resume();
  announce(restarted);
}

// What was committed last may be on the disk or not, so nobody goes on from what is in memory, and
// ids given out under this epoch are given up with it.
void Sequencer::degrade(const Error& why, std::span<const Reply> failed) {
  log::error("store_degraded", {{"why", why.message}});
  if (flusher_) flusher_->pause();
  next_reopen_millis_ = clock_.monotonic_millis() + config_.reopen_interval.millis;
  std::deque<Queued> behind;
  {
    const std::lock_guard lock(queue_mutex_);
    ++stats_.commit_failures;
    degraded_reason_ = why.message;
    degraded_.store(true, std::memory_order_relaxed);
    behind.swap(queue_);
  }
  const Result<Outcome> refusal = refuse(Reason::kStoreDegraded, why.message);
  for (const Reply& reply : failed) reply(refusal);
  for (const Queued& queued : behind) queued.done(refusal);
  if (listener_) listener_->on_health_changed(true, why.message);
}

void Sequencer::try_to_recover() {
  if (clock_.monotonic_millis() < next_reopen_millis_) return;
  Directory fresh;  // then the old directory, which is taken apart when the lock is free again
  const Result<> reopened = store_->reopen();
  Result<Decision> restarted =
      reopened ? load_and_restart(fresh, {}) : tl::unexpected(reopened.error());
  if (!restarted) {
    log::warning("store_still_degraded", {{"why", restarted.error().message}});
    next_reopen_millis_ = clock_.monotonic_millis() + config_.reopen_interval.millis;
    const std::lock_guard lock(queue_mutex_);
    degraded_reason_ = restarted.error().message;
    return;
  }
  enter_epoch(fresh, *restarted);
  {
    const std::lock_guard lock(queue_mutex_);
    degraded_reason_.clear();
    degraded_.store(false, std::memory_order_relaxed);
  }
  log::info("store_recovered", {{"epoch", directory_.meta().epoch}});
  if (!listener_) return;
  listener_->on_epoch_changed(directory_.meta().epoch);
  listener_->on_health_changed(false, "");
}

}  // namespace berth
