// The one writer. Takes what is queued, decides it in a draft, makes it durable as one write,
// installs it, and only then lets replies, events and asks out:
//
//   submit ─▶ queue ─▶ decide(directory, batch, now) ─▶ store.commit ─▶ install ─▶ done(outcome),
//   events, asks
//
// Time: advances by the differences of a monotonic clock, at most max_step a turn, so that the
// process's own stall (SIGSTOP, a slow disk) ages nobody's deadline. Between turns it runs ticks
// and job slices; in interval durability a thread of its own does the periodic fsync, so that no
// reply waits for it.
//
// Trouble: when commit (or the periodic fsync) fails, the outcome is unknown. The draft is dropped,
// its callers and all later ones get store_degraded, reads go on where they may, and the sequencer
// tries to reopen and reload the store until that works; then it goes on under a new epoch and
// tells `listener` that every Link has to re-attach.
//
// Turns: one thread at a time is in a turn: the sequencer's own, or one that brings a command of an
// engine's everyday work and finds none. It decides that, and what came meanwhile, which saves two
// changes of thread a command. Light commands that come together go through the queue instead, to
// share a commit. Never where the commit would wait for a disk.
//
// Threads: submit(), view(), events(), stats(), now() from any; everything else of the sequencer
// happens within a turn. One view() at a time per thread (view_mutex.h).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/error.h"
#include "server/directory/apply.h"
#include "server/directory/directory.h"
#include "server/policy/evictor.h"
#include "server/sequencer/decide.h"
#include "server/sequencer/event_log.h"
#include "server/sequencer/flusher.h"
#include "server/sequencer/retired_history.h"
#include "server/sequencer/view.h"
#include "server/store/store.h"

namespace berth {

struct SequencerConfig {
  DirectoryConfig directory;
  Durability durability = Durability::kInterval;
  Duration flush_interval = milliseconds(100);
  Duration tick_interval = milliseconds(100);
  Duration max_step = milliseconds(500);  // most that logical time moves in one turn
  Duration reopen_interval = seconds(1);  // between tries to get a degraded store back
  uint32_t queue_commands_max = 16'384;   // beyond: queue_full
  uint32_t batch_commands_max = 256;
  uint32_t batch_records_max = 4096;      // sum of weight_of() of one batch
  uint32_t events_max = 65'536;           // kept for watchers
  uint32_t retired_history_max = 16'384;  // copies that left, kept for Explain
  policy::EvictorConfig evictor;
};

struct SequencerStats {
  uint64_t commands = 0;
  uint64_t refused = 0;
  uint64_t batches = 0;
  uint64_t records = 0;
  uint64_t commit_failures = 0;  // of commits and of periodic fsyncs
  uint64_t queue_full = 0;
  uint64_t queued = 0;        // now
  uint64_t stall_millis = 0;  // the server's own stalls, not charged to anybody
  // Of ticks, jobs and eviction: decide, commit and install.
  uint64_t slices = 0;
  uint64_t slice_micros_max = 0;
  uint64_t slice_records_max = 0;
  policy::EvictorStats eviction;
  uint64_t eviction_slice_micros_max = 0;
  uint64_t eviction_memory_bytes = 0;  // of all policies; as of the latest second
};

// Told after install, within a turn, in order. Must not block, and must not hold a
// view.
class SequencerListener {
 public:
  virtual ~SequencerListener() = default;
  virtual void on_ask(const Ask& ask) = 0;
  // The store was reloaded under a new epoch: every Link ends and re-attaches.
  virtual void on_epoch_changed(Epoch epoch) = 0;
  // Degraded: mutations are refused until the store is back. `reason` is empty when it is.
  virtual void on_health_changed(bool degraded, const std::string& reason) = 0;
};

class Sequencer {
 public:
  using Reply = std::function<void(const Result<Outcome>&)>;

  Sequencer(SequencerConfig config, std::unique_ptr<Store> store, const Clock& clock);
  ~Sequencer();  // stops

  // Loads the store, raises the epoch and starts the thread. `listener` may be null.
  // `fresh_store_id` names a store that is new, or that is a copy of another. `progress` is told
  // records read. Errors: store_*.
  Result<> start(StoreId fresh_store_id, SequencerListener* listener,
                 const std::function<void(uint64_t)>& progress);
  // Finishes what is queued, flushes and closes the store. Later submits are answered
  // `unavailable`. The view stays.
  void stop();

  // `done` is called exactly once: within a turn, in the order of submits, and that may be right
  // here; or at once, when the queue is full, the store degraded or the sequencer stopped. It must
  // not block and must not throw. The caller holds no view, and no lock that `done` or the listener
  // takes.
  void submit(Command command, Reply done);

  DirectoryView view() const { return {directory_, view_mutex_}; }
  // The policies and what they hold, as of the latest second.
  std::vector<policy::PolicyRow> policies() const;
  // The copies that left lately.
  const RetiredHistory& retired() const { return retired_; }
  EventLog& events() { return events_; }
  const EventLog& events() const { return events_; }
  SequencerStats stats() const;
  // Whether mutations are refused, and reads that would have to be protected with them. Cheap: for
  // every probe.
  bool is_degraded() const { return degraded_.load(std::memory_order_relaxed); }
  // Empty while the store can be written; else why not.
  std::string degraded_reason() const;
  // Rises every turn of the loop: the watchdog pings only while it moves. It also moves while the
  // store is degraded.
  uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }
  // Logical time of the latest turn: what ages and deadlines in views are counted from.
  Time now() const { return Time{now_millis_.load(std::memory_order_relaxed)}; }
  const SequencerConfig& config() const { return config_; }

 private:
  struct Queued {
    Command command;
    Reply done;
  };
  struct Batch {
    std::vector<Command> commands;
    std::vector<Reply> replies;  // beside commands
  };
  enum class Wake : uint8_t { kWork, kStop };

  void run();
  Wake wait_for_work();
  void turn();
  void run_queued();
  void run_batch(const Batch& batch);
  // A turn for one command, on the thread of its caller.
  void turn_here(Command command, Reply done);
  bool may_turn_here(const Command& command);  // under queue_mutex_
  bool has_own_work() const;
  void run_tick();
  void run_job_slice();
  void run_eviction_slice();
  void report_policies(int64_t now);
  // One command of our own; nothing when the store refused it.
  std::optional<Outcome> run_own(const Command& command);
  // From the front of the queue, as far as may_take says yes.
  Batch take_batch(bool (*may_take)(const Command&));
  // Decides, commits and installs. Errors: the store's; nothing was installed.
  Result<Decision> carry_out(std::span<const Command> commands);
  void announce(const Decision& decision);
  void count(const Decision& decision);

  // Fills an empty directory and raises its epoch.
  Result<Decision> load_and_restart(Directory& fresh,
                                    const std::function<void(uint64_t)>& progress);
  // Puts it in the place of the present one, which is left in `fresh`.
  void enter_epoch(Directory& fresh, const Decision& restarted);
  // Refuses the callers of the batch that failed, and everybody behind them.
  void degrade(const Error& why, std::span<const Reply> failed);
  void try_to_recover();
  void advance_time();

  const SequencerConfig config_;
  std::unique_ptr<Store> store_;
  const Clock& clock_;
  SequencerListener* listener_ = nullptr;
  StoreId fresh_store_id_;

  Directory directory_;  // written within a turn under view_mutex_
  mutable ViewMutex view_mutex_;
  EventLog events_;
  RetiredHistory retired_;
  std::unique_ptr<Flusher> flusher_;  // interval durability only

  // Of the turn.
  policy::Evictor evictor_;
  int64_t next_report_millis_ = 0;
  LogicalClock logical_clock_;
  int64_t next_tick_millis_ = 0;
  int64_t next_reopen_millis_ = 0;  // while degraded
  bool tick_has_more_ = false;
  // Jobs take turns, one slice each; when a whole round says that there is no more to do now, they
  // rest until the next tick or batch.
  JobId job_cursor_;
  bool jobs_due_ = false;
  bool job_round_has_more_ = false;

  mutable std::mutex queue_mutex_;  // guards what follows, down to policies_
  std::condition_variable queue_ready_;
  std::deque<Queued> queue_;
  bool is_turning_ = true;       // some thread is in a turn; before the start, none may be
  bool turn_is_wanted_ = false;  // the sequencer's thread waits for the end of another's turn
  bool own_work_due_ = false;    // has_own_work() at the end of the latest turn
  // Of commands that may not turn by themselves, since several came at once a moment ago: together
  // they cost less.
  uint32_t company_left_ = 0;
  bool stopping_ = false;
  std::string degraded_reason_;
  SequencerStats stats_;
  std::vector<policy::PolicyRow> policies_;

  std::atomic<bool> degraded_{false};
  std::atomic<uint64_t> turns_{0};
  std::atomic<int64_t> now_millis_{0};
  std::thread thread_;
};

}  // namespace berth
