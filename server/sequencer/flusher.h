// Fsyncs the store every interval on a thread of its own, so that no reply waits for it. It is idle
// while nothing is committed, and can be paused, because a store that is being reopened takes no
// flush. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "common/error.h"
#include "common/time.h"
#include "server/store/store.h"

namespace berth {

class Flusher {
 public:
  // Starts paused. `store` outlives it.
  Flusher(Store& store, Duration interval);
  ~Flusher();

  // After pause() no flush is running and none begins until resume(): the store may be reopened.
  void pause();
  void resume();
  // Something was committed: it is fsynced within the interval. Nothing is done for an idle store.
  void note_commit();
  // The error of a flush that failed, once.
  std::optional<Error> take_error();

 private:
  void run();

  Store& store_;
  const Duration interval_;
  std::mutex mutex_;  // guards everything below but thread_
  std::condition_variable changed_;
  bool paused_ = true;
  bool flushing_ = false;
  bool dirty_ = false;
  bool stopping_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace berth
