// One thread that takes the completions of every call the bench makes, of Berth and of its floor
// alike, so that both pay the same for their client.
//
// Everything that events touch is guarded by mutex(): events run under it, and whoever starts a
// call from another thread holds it.
#pragma once

#include <grpcpp/completion_queue.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "common/time.h"

namespace berth::bench {

// Nanoseconds of the steady clock.
uint64_t now_nanos();

// The tag of an asynchronous gRPC operation.
class Event {
 public:
  virtual ~Event() = default;
  virtual void on_event(bool ok) = 0;
};

// An event that is a member function of the object it belongs to.
template <class Owner>
class OwnedEvent final : public Event {
 public:
  OwnedEvent(Owner& owner, void (Owner::*handler)(bool)) : owner_(owner), handler_(handler) {}
  void on_event(bool ok) override { (owner_.*handler_)(ok); }

 private:
  Owner& owner_;
  void (Owner::*handler_)(bool);
};

class EventLoop {
 public:
  // `beat` runs about every `interval`, on the loop's thread and under the mutex.
  EventLoop(Duration interval, std::function<void()> beat);
  // stop() was called, or nothing was ever started.
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Waits for the end of every operation: streams are cancelled before. Starts nothing any more.
  void stop();

  grpc::CompletionQueue& queue() { return queue_; }
  std::mutex& mutex() { return mutex_; }
  bool is_stopping() const { return is_stopping_; }  // under the mutex

 private:
  void run();

  const uint64_t interval_nanos_;
  const std::function<void()> beat_;
  grpc::CompletionQueue queue_;
  std::mutex mutex_;
  bool is_stopping_ = false;
  uint64_t next_beat_ = 0;
  std::thread thread_;
};

}  // namespace berth::bench
