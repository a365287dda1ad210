// The one writer. Takes what is queued, decides it in a draft, makes it durable as one write, installs it, and only then
// lets replies, events and asks out:
//
//   submit ─▶ queue ─▶ apply(draft, command, now) ─▶ store.commit ─▶ install ─▶ done(outcome), events, asks
//
// Time: advances by the differences of a monotonic clock, at most max_step a turn, so that the process's own stall
// (SIGSTOP, a slow disk) ages nobody's deadline. Between turns it runs ticks, job slices and, in interval durability,
// the periodic fsync.
//
// Trouble: when commit fails, the batch's outcome is unknown. Its draft is dropped, its callers and all later ones get
// store_degraded, reads go on where they may, and the sequencer tries to reopen and reload the store until that works;
// then it goes on under a new epoch and tells `listener` that every Link has to re-attach.
//
// Threads: submit() and view() from any; everything else of the sequencer happens on its own thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/clock.h"
#include "common/error.h"
#include "server/directory/apply.h"
#include "server/directory/directory.h"
#include "server/sequencer/event_log.h"
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
  uint32_t batch_records_max = 16'384;    // sum of weight_of() of one batch
  uint32_t events_max = 65'536;           // kept for watchers
};

struct SequencerStats {
  uint64_t commands = 0;
  uint64_t refused = 0;
  uint64_t batches = 0;
  uint64_t records = 0;
  uint64_t commit_failures = 0;
  uint64_t queue_full = 0;
  uint64_t queued = 0;        // now
  uint64_t stall_millis = 0;  // the server's own stalls, not charged to anybody
  uint64_t slice_micros_max = 0;
};

// Told after install, on the sequencer's thread, in order. Must not block.
class SequencerListener {
 public:
  virtual ~SequencerListener() = default;
  virtual void on_ask(const Ask& ask) = 0;
  // The store was reloaded under a new epoch (or is degraded): every Link ends and re-attaches.
  virtual void on_epoch_changed(Epoch epoch) = 0;
  virtual void on_health_changed(bool degraded, const std::string& reason) = 0;
};

class Sequencer {
 public:
  using Reply = std::function<void(const Result<Outcome>&)>;

  Sequencer(SequencerConfig config, std::unique_ptr<Store> store, const Clock& clock);
  ~Sequencer();

  // Loads the store, raises the epoch and starts the thread. `progress` is told records read. Errors: store_*.
  Result<> start(StoreId fresh_store_id, SequencerListener* listener, const std::function<void(uint64_t)>& progress);
  // Finishes what is queued, flushes and stops. Later submits are answered `unavailable`.
  void stop();

  // `done` is called exactly once, on the sequencer's thread (or here, when the queue is full or stopped).
  void submit(Command command, Reply done);

  DirectoryView view() const { return {directory_, view_mutex_}; }
  const EventLog& events() const { return events_; }
  SequencerStats stats() const;
  // Empty while the store can be written; else why not.
  std::string degraded_reason() const;
  // Rises every turn of the loop: the watchdog pings only while it moves.
  uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }
  const SequencerConfig& config() const { return config_; }

 private:
  struct Queued {
    Command command;
    Reply done;
  };

  void run();
  // One round: a batch from the queue, or internal work. Returns whether anything was done.
  bool turn();
  void decide_and_commit(std::vector<Queued> batch);
  void degrade(const Error& why);
  bool try_to_recover();
  std::vector<Queued> take_batch();
  Time now();

  const SequencerConfig config_;
  std::unique_ptr<Store> store_;
  const Clock& clock_;
  SequencerListener* listener_ = nullptr;

  Directory directory_;  // written by the sequencer's thread under view_mutex_
  mutable std::shared_mutex view_mutex_;
  EventLog events_;
  LogicalClock logical_clock_;

  mutable std::mutex queue_mutex_;  // guards queue_, stopping_, degraded_reason_, stats_
  std::condition_variable queue_ready_;
  std::deque<Queued> queue_;
  bool stopping_ = false;
  std::string degraded_reason_;
  SequencerStats stats_;

  std::atomic<uint64_t> turns_{0};
  std::thread thread_;
};

}  // namespace berth
