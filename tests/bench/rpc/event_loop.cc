#include "tests/bench/rpc/event_loop.h"

#include <chrono>

namespace berth::bench {

uint64_t now_nanos() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

EventLoop::EventLoop(Duration interval, std::function<void()> beat)
    : interval_nanos_(static_cast<uint64_t>(interval.millis) * 1'000'000),
      beat_(std::move(beat)),
      thread_([this] { run(); }) {}

EventLoop::~EventLoop() { stop(); }

void EventLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return;
    is_stopping_ = true;
    queue_.Shutdown();
  }
  thread_.join();
}

void EventLoop::run() {
  for (;;) {
    void* tag = nullptr;
    bool ok = false;
    const auto until =
        std::chrono::system_clock::now() + std::chrono::nanoseconds(interval_nanos_ / 4);
    const auto next = queue_.AsyncNext(&tag, &ok, until);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    const std::lock_guard lock(mutex_);
    if (next == grpc::CompletionQueue::GOT_EVENT) static_cast<Event*>(tag)->on_event(ok);
    if (const uint64_t now = now_nanos(); now >= next_beat_ && !is_stopping_) {
      next_beat_ = now + interval_nanos_;
      beat_();
    }
  }
}

}  // namespace berth::bench
