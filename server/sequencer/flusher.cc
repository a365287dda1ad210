#include "server/sequencer/flusher.h"

#include <chrono>
#include <utility>

namespace berth {

Flusher::Flusher(Store& store, Duration interval)
    : store_(store), interval_(interval), thread_([this] { run(); }) {}

Flusher::~Flusher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Flusher::pause() {
  std::unique_lock lock(mutex_);
  paused_ = true;
  changed_.wait(lock, [this] { return !flushing_; });
}

void Flusher::resume() {
  {
    const std::lock_guard lock(mutex_);
    paused_ = false;
    error_.reset();
  }
  changed_.notify_all();
}

void Flusher::note_commit() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(dirty_, true)) return;
  }
  changed_.notify_all();
}

std::optional<Error> Flusher::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

void Flusher::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this] { return stopping_ || (dirty_ && !paused_); });
    // Counted from the first commit that is not yet fsynced, so nothing waits longer than the
    // interval.
    if (changed_.wait_for(lock, std::chrono::milliseconds(interval_.millis),
                          [this] { return stopping_ || paused_; }))
      continue;
    dirty_ = false;
    flushing_ = true;
    lock.unlock();
    const Result<> flushed = store_.flush();
    lock.lock();
    flushing_ = false;
    if (!flushed) error_ = flushed.error();
    changed_.notify_all();
  }
}

}  // namespace berth
