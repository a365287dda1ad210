// A sequencer over a memory disk and a clock that stands still. Ticks and reopening follow that
// clock; the loop itself looks every millisecond, so tests wait for what they want to see and never
// for time.
#pragma once

#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/sequencer/sequencer.h"
#include "server/store/memory_store.h"
#include "tests/unit/common/fake_clock.h"

namespace berth::testing {

// One value from one thread to another. Copies share it, so that the giver may still be inside
// set() when the taker has it and is gone.
template <class T>
class Answer {
 public:
  void set(T value) const { promise_->set_value(std::move(value)); }
  T get() const { return promise_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<T>> promise_ = std::make_shared<std::promise<T>>();
};

// What the sequencer told, in order, as words.
class Recorder final : public SequencerListener {
 public:
  void on_ask(const Ask& ask) override {
    note("ask " + std::to_string(static_cast<int>(ask.kind)));
  }
  void on_epoch_changed(Epoch epoch) override { note("epoch " + std::to_string(epoch)); }
  void on_health_changed(bool degraded, const std::string& reason) override {
    note(degraded ? "degraded: " + reason : "healthy");
  }
  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    told_.push_back(std::move(what));
  }
  mutable std::mutex mutex_;  // guards told_
  std::vector<std::string> told_;
};

inline SequencerConfig quick_config() {
  SequencerConfig config;
  config.tick_interval = milliseconds(1);
  config.flush_interval = milliseconds(1);
  return config;
}

inline Command open_namespace(const std::string& name, uint32_t layers = 1) {
  OpenNamespace open;
  open.spec.name = name;
  open.spec.layers = layers;
  open.spec.digest_bytes = 16;
  open.fingerprint = {std::hash<std::string>{}(name), 1};
  return open;
}

class Rig {
 public:
  explicit Rig(SequencerConfig config = quick_config()) : config_(std::move(config)) {}

  MemoryDisk disk;
  FakeClock clock;
  Recorder listener;
  std::unique_ptr<Sequencer> sequencer;

  // A new run over the same disk.
  Result<> try_start(StoreId fresh = {1, 1}) {
    sequencer.reset();
    sequencer = std::make_unique<Sequencer>(
        config_, std::make_unique<MemoryStore>(disk, config_.durability), clock);
    return sequencer->start(fresh, &listener, {});
  }
  void start(StoreId fresh = {1, 1}) { REQUIRE(try_start(fresh)); }

  Result<Outcome> call(Command command) {
    const Answer<Result<Outcome>> answer;
    sequencer->submit(std::move(command),
                      [answer](const Result<Outcome>& outcome) { answer.set(outcome); });
    return answer.get();
  }
  template <class R>
  R must(Command command) {
    const Result<Outcome> outcome = call(std::move(command));
    if (!outcome) FAIL(outcome.error().message);
    return std::get<R>(*outcome);
  }

  Epoch epoch() { return sequencer->view()->meta().epoch; }
  bool has_namespace(const std::string& name) {
    return sequencer->view()->namespace_by_name(name) != nullptr;
  }

  template <class Condition>
  void until(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }
  // The sequencer has gone round at least once after this was called.
  void one_more_turn() {
    const uint64_t turns = sequencer->turns();
    until([&] { return sequencer->turns() >= turns + 2; });
  }

 private:
  SequencerConfig config_;
};

// Holds the sequencer's thread inside a reply, so that a test can queue behind it.
class Held {
 public:
  explicit Held(Rig& rig) {
    const Answer<bool> entered;
    rig.sequencer->submit(open_namespace("held"),
                          [entered, released = released_](const Result<Outcome>&) {
                            entered.set(true);
                            released.get();
                          });
    entered.get();
  }
  ~Held() { release(); }
  void release() {
    if (!std::exchange(is_released_, true)) released_.set(true);
  }

 private:
  const Answer<bool> released_;
  bool is_released_ = false;
};

}  // namespace berth::testing
