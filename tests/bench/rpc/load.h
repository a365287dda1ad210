// Runs flows for a while and measures them.
//
// Closed loop: every flow starts its next cycle as soon as the last has ended. Open loop: cycles
// are meant to start at the times of a Schedule; one that finds no idle flow waits for one, and its
// latency is counted from when it was meant to start all the same.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/rpc/flow.h"
#include "tests/bench/rpc/histogram.h"
#include "tests/bench/rpc/schedule.h"

namespace berth::bench {

struct LoadPlan {
  double warm_up_seconds = 0.2;
  double seconds = 1;
  double cycles_per_second = 0;  // of an open loop; zero: closed
  uint64_t seed = 1;
  pid_t server = 0;  // whose CPU time is counted
  // The server may be out of reach for a while: a failed cycle is counted and begun again after a
  // pause, instead of ending the run.
  bool tolerates_failures = false;
};

struct Measure {
  double seconds = 0;
  uint64_t cycles = 0;
  uint64_t items = 0;
  uint64_t failures = 0;
  Histogram latency;  // of cycles
  double server_cpu_seconds = 0;
  double client_cpu_seconds = 0;

  double items_per_second() const;
  double cycles_per_second() const;
  double server_cpu_per_item() const;  // seconds
};

class Load final : FlowOwner {
 public:
  // The flows run on `loop`, and are idle before and after.
  Load(EventLoop& loop, Flows& flows) : loop_(loop), flows_(flows) {}

  // Errors: the first failure of a cycle; kLimitReached when an open loop's rate is far beyond what
  // is served.
  Result<Measure> run(const LoadPlan& plan);
  // Exactly so many cycles of all flows together, not measured.
  Result<> run_cycles(uint64_t cycles);

 private:
  enum class Mode : uint8_t { kClosed, kOpen, kCounted, kEnding };

  void on_cycle(Flow& flow, uint64_t items) override;
  void on_failure(Flow& flow, const Error& why) override;
  void begin(Mode mode);
  void start(Flow& flow, uint64_t intended_nanos);
  void go_on(Flow& flow);
  void pace_until(uint64_t end_nanos);
  uint64_t next_due() { return schedule_start_nanos_ + schedule_->next(); }
  Result<> end();

  EventLoop& loop_;
  Flows& flows_;
  // Of the pacing thread; none in a closed loop.
  std::optional<Schedule> schedule_;
  uint64_t schedule_start_nanos_ = 0;
  uint64_t due_nanos_ = 0;
  // Under the loop's mutex.
  std::condition_variable idle_changed_;
  Mode mode_ = Mode::kClosed;
  size_t running_ = 0;
  bool tolerates_failures_ = false;
  std::optional<Error> failure_;
  std::deque<Flow*> idle_;           // open loop
  std::deque<uint64_t> waiting_;     // intended starts that found no idle flow
  std::deque<Flow*> resting_;        // failed; begun again by the pacing thread
  uint64_t cycles_left_ = 0;         // counted
  uint64_t window_start_nanos_ = 0;  // open loop: only what was meant to start from here on counts
  uint64_t window_end_nanos_ = 0;
  Measure measure_;
};

}  // namespace berth::bench
