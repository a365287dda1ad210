// How far a replay is: counted by the engines, drawn by whoever waits for them, and how all of them
// are told to stop.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "common/time.h"

namespace berth::replay {

class Progress {
 public:
  explicit Progress(uint64_t requests_total) : total_(requests_total) {}

  void add(uint64_t requests) { done_ += requests; }
  uint64_t done() const { return done_; }

  void stop();
  bool is_stopped() const { return stopped_; }
  // True when stopped meanwhile.
  bool wait(Duration within);

  // One line on standard error, over the last one, if that is a terminal.
  void draw(double seconds) const;
  // Makes room for other output.
  void clear() const;

 private:
  const uint64_t total_;
  std::atomic<uint64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace berth::replay
