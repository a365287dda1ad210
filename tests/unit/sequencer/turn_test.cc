// Whose thread decides a command. Only that, and that it makes no difference.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/sequencer/rig.h"
#include "tests/unit/sequencer/storing_worker.h"

namespace berth {
namespace {

using testing::Answer;
using testing::open_namespace;
using testing::quick_config;
using testing::Rig;
using testing::storing_worker;
using testing::StoringWorker;

// Whether the thread that brings the command decides it.
bool is_decided_here(Rig& rig, Command command) {
  const Answer<std::thread::id> answered_by;
  rig.sequencer->submit(std::move(command), [answered_by](const Result<Outcome>& outcome) {
    REQUIRE(outcome);
    answered_by.set(std::this_thread::get_id());
  });
  return answered_by.get() == std::this_thread::get_id();
}

// Reserves batch after batch until a thread that brings one decides it. Returns how many chunks.
uint32_t store_until_decided_here(Rig& rig, const StoringWorker& worker, uint32_t batch = 1) {
  uint32_t stored = 0;
  rig.until([&] {
    stored += batch;
    return is_decided_here(rig, worker.reserve(stored, stored, batch));
  });
  return stored;
}

TEST_CASE("a small command that finds the sequencer asleep is decided by the thread that brings it",
          "[sequencer][turn]") {
  SequencerConfig config = quick_config();
  config.durability = GENERATE(Durability::kInterval, Durability::kNone);
  Rig rig(config);
  rig.start();
  const StoringWorker worker = storing_worker(rig, 60'000);
  const uint32_t stored = store_until_decided_here(rig, worker);
  CHECK(rig.sequencer->view()->replicas().size() == stored);
}

TEST_CASE("a batch that finds no turn under way is decided by the thread that brings it",
          "[sequencer][turn]") {
  Rig rig;
  rig.start();
  const StoringWorker worker = storing_worker(rig, 60'000);
  const uint32_t stored = store_until_decided_here(rig, worker, 64);
  CHECK(rig.sequencer->view()->replicas().size() == stored);
}

TEST_CASE("a command that could wait for a disk is left to the sequencer's thread",
          "[sequencer][turn]") {
  SequencerConfig config = quick_config();
  config.durability = GENERATE(Durability::kSync, Durability::kInterval);
  Rig rig(config);
  rig.start();
  const StoringWorker worker = storing_worker(rig, 10'000);
  for (uint32_t i = 0; i < 20; ++i) {
    if (config.durability == Durability::kSync)
      CHECK_FALSE(is_decided_here(rig, worker.reserve(i + 1, i, 1)));
    CHECK_FALSE(is_decided_here(rig, open_namespace("n" + std::to_string(i))));
  }
}

TEST_CASE("turns of many threads and of the sequencer leave out nothing and nobody",
          "[sequencer][turn]") {
  Rig rig;
  rig.start();
  const StoringWorker worker = storing_worker(rig, 10'000);
  constexpr uint32_t kThreads = 4;
  constexpr uint32_t kEach = 200;
  std::atomic<uint32_t> granted = 0;
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < kEach; ++i) {
        const uint32_t number = t * kEach + i + 1;
        if (rig.call(worker.reserve(number, number, 1))) ++granted;
        if (i % 20 == 0) rig.call(open_namespace(std::to_string(number)));
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(granted == kThreads * kEach);
  CHECK(rig.sequencer->view()->replicas().size() == kThreads * kEach);
  // Its own work goes on: ticks are turns of its thread.
  rig.one_more_turn();
}

TEST_CASE("a commit that fails in the turn of a caller's thread degrades the store for everybody",
          "[sequencer][turn][trouble]") {
  Rig rig;
  rig.start();
  const StoringWorker worker = storing_worker(rig, 10'000);
  const uint32_t stored = store_until_decided_here(rig, worker);
  rig.disk.fail_next(MemoryDisk::Fault::kLost);
  const Result<Outcome> lost = rig.call(worker.reserve(stored + 1, stored + 1, 1));
  REQUIRE_FALSE(lost);
  CHECK(lost.error().reason == Reason::kStoreDegraded);
  CHECK(rig.sequencer->is_degraded());
  CHECK(rig.sequencer->view()->replicas().size() == stored);
  rig.clock.advance(quick_config().reopen_interval + seconds(1));
  rig.until([&] { return !rig.sequencer->is_degraded(); });
  CHECK(rig.epoch() == 2);
}

TEST_CASE("a stop waits for the turn of a caller's thread, and refuses the next one",
          "[sequencer][turn]") {
  Rig rig;
  rig.start();
  const StoringWorker worker = storing_worker(rig, 10'000);
  std::thread stopper;
  uint32_t stored = 0;
  bool was_here = false;
  while (!was_here) {
    ++stored;
    const std::thread::id here = std::this_thread::get_id();
    const Answer<bool> answered;
    rig.sequencer->submit(worker.reserve(stored, stored, 1), [&, answered](const auto& outcome) {
      REQUIRE(outcome);
      was_here = std::this_thread::get_id() == here;
      if (was_here) stopper = std::thread([&] { rig.sequencer->stop(); });
      answered.set(true);
    });
    answered.get();
  }
  stopper.join();
  const Result<Outcome> late = rig.call(worker.reserve(stored + 1, stored + 1, 1));
  REQUIRE_FALSE(late);
  CHECK(late.error().reason == Reason::kUnavailable);
  CHECK(rig.sequencer->view()->replicas().size() == stored);
}

}  // namespace
}  // namespace berth
