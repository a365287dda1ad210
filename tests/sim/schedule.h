// What happens when: the simulated world's one queue of future events, in order of time, and of
// being scheduled where the time is the same.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "tests/sim/judge.h"

namespace berth::sim {

class Schedule {
 public:
  explicit Schedule(Judge& judge) : judge_(judge) {}

  int64_t now() const { return now_; }
  uint64_t next_number() { return ++numbers_; }
  void after(int64_t millis, std::function<void()> what) {
    queue_.push({now_ + millis, ++sequence_, std::move(what)});
  }
  // Runs everything that is due until then; stops at the first failure.
  void run_until(int64_t then) {
    while (!judge_.failed() && !queue_.empty() && queue_.top().at <= then) {
      const std::function<void()> what = std::move(const_cast<Event&>(queue_.top()).what);
      now_ = queue_.top().at;
      queue_.pop();
      judge_.at(now_);
      what();
    }
    now_ = then;
    judge_.at(now_);
  }

 private:
  struct Event {
    int64_t at;
    uint64_t sequence;
    std::function<void()> what;
    bool operator<(const Event& other) const {  // the queue's top is its greatest
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };
  Judge& judge_;
  int64_t now_ = 1000;
  uint64_t sequence_ = 0;
  uint64_t numbers_ = 0;
  std::priority_queue<Event> queue_;
};

// A process that can stand still: what reaches it meanwhile waits, in order.
class Scheduling {
 public:
  bool is_stopped() const { return stopped_; }
  void stop() { stopped_ = true; }
  template <class What>
  void run(What&& what) {
    if (stopped_)
      waiting_.push_back(std::forward<What>(what));
    else
      what();
  }
  void forget_waiting() {  // the process died
    stopped_ = false;
    waiting_.clear();
  }
  void go_on() {
    stopped_ = false;
    for (auto& what : std::exchange(waiting_, {})) run(std::move(what));
  }

 private:
  bool stopped_ = false;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace berth::sim
