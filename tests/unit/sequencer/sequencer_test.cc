#include "server/sequencer/sequencer.h"

#include <algorithm>
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
using testing::Held;
using testing::open_namespace;
using testing::quick_config;
using testing::Rig;

// ---- Order and bounds
// -----------------------------------------------------------------------------------------

TEST_CASE("commands are answered in the order they were submitted, after their effect can be read",
          "[sequencer]") {
  Rig rig;
  rig.start();
  std::vector<int> answered;
  bool all_visible = true;
  for (int i = 0; i < 300; ++i)
    rig.sequencer->submit(open_namespace("n" + std::to_string(i)), [&, i](const Result<Outcome>&) {
      answered.push_back(i);
      all_visible = all_visible && rig.has_namespace("n" + std::to_string(i));
    });
  rig.must<NamespaceOpened>(open_namespace("last"));
  REQUIRE(answered.size() == 300);
  CHECK(std::is_sorted(answered.begin(), answered.end()));
  CHECK(all_visible);
}

TEST_CASE("a refusal reaches its caller and nobody else", "[sequencer]") {
  Rig rig;
  rig.start();
  rig.must<NamespaceOpened>(open_namespace("a", 1));
  const Result<Outcome> refused = rig.call(open_namespace("a", 2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kNamespaceMismatch);
  rig.must<NamespaceOpened>(open_namespace("b"));
  CHECK(rig.sequencer->stats().refused == 1);
}

TEST_CASE("what queues up behind a batch becomes one commit", "[sequencer][FC-61]") {
  Rig rig;
  rig.start();
  {
    Held held(rig);
    const uint64_t commits = rig.disk.commits();
    for (int i = 0; i < 20; ++i)
      rig.sequencer->submit(open_namespace("n" + std::to_string(i)), [](const auto&) {});
    CHECK(rig.disk.commits() == commits);
    const Answer<uint64_t> after;
    rig.sequencer->submit(open_namespace("last"),
                          [&, after](const auto&) { after.set(rig.disk.commits()); });
    held.release();
    CHECK(after.get() == commits + 1);
  }
}

TEST_CASE("a batch is bounded by its commands and by its records", "[sequencer]") {
  SequencerConfig config = quick_config();
  config.batch_commands_max = 4;
  config.batch_records_max = 1000;
  uint64_t expected = 3;  // 12 commands of weight 1
  Command command = Tick{};
  SECTION("by commands") {}
  SECTION("by records") {
    Abort abort;
    abort.replicas.resize(400);
    command = abort;
    expected = 6;  // two fit
  }
  SECTION("one that is too heavy goes alone") {
    Abort abort;
    abort.replicas.resize(5000);
    command = abort;
    expected = 12;
  }
  Rig rig(config);
  rig.start();
  Held held(rig);
  const uint64_t batches = rig.sequencer->stats().batches;
  const Answer<bool> done;
  for (int i = 0; i < 12; ++i)
    rig.sequencer->submit(command, [&, i, done](const auto&) {
      if (i == 11) done.set(true);
    });
  held.release();
  done.get();
  CHECK(rig.sequencer->stats().batches == batches + expected);
}

TEST_CASE("a full queue refuses at once, on the caller's thread", "[sequencer][FC-61]") {
  SequencerConfig config = quick_config();
  config.queue_commands_max = 10;
  Rig rig(config);
  rig.start();
  Held held(rig);
  for (int i = 0; i < 10; ++i)
    rig.sequencer->submit(open_namespace("n" + std::to_string(i)), [](const auto&) {});
  CHECK(rig.sequencer->stats().queued == 10);
  Reason reason = Reason::kInternal;
  rig.sequencer->submit(open_namespace("one too many"),
                        [&](const Result<Outcome>& outcome) { reason = outcome.error().reason; });
  CHECK(reason == Reason::kQueueFull);
  CHECK(rig.sequencer->stats().queue_full == 1);
  held.release();
  rig.until([&] { return rig.sequencer->stats().queued == 0; });
  rig.must<NamespaceOpened>(open_namespace("one too many"));
}

TEST_CASE("many threads may submit and read at once", "[sequencer]") {
  Rig rig;
  rig.start();
  constexpr int kThreads = 4;
  constexpr int kEach = 100;
  std::atomic<int> granted = 0;
  std::atomic<bool> reading = true;
  std::atomic<int> torn = 0;  // views in which an index and its records disagree
  std::thread reader([&] {
    while (reading) {
      const DirectoryView view = rig.sequencer->view();
      for (const auto& [id, ns] : view->namespaces())
        if (view->namespace_by_name(ns.spec.name) != &ns) ++torn;
    }
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i)
        if (rig.call(open_namespace(std::to_string(t) + "." + std::to_string(i)))) ++granted;
    });
  for (std::thread& writer : writers) writer.join();
  reading = false;
  reader.join();
  CHECK(torn == 0);
  CHECK(granted == kThreads * kEach);
  CHECK(rig.sequencer->view()->namespaces().size() == kThreads * kEach);
}

// ---- Time
// -----------------------------------------------------------------------------------------------------

TEST_CASE("the server's own stall moves time by no more than a step", "[sequencer]") {
  SequencerConfig config = quick_config();
  config.max_step = milliseconds(500);
  Rig rig(config);
  rig.start();
  const Time before = rig.sequencer->now();
  rig.clock.advance(seconds(30));
  rig.one_more_turn();
  CHECK(rig.sequencer->now() == before + milliseconds(500));
  CHECK(rig.sequencer->stats().stall_millis == 29'500);
}

TEST_CASE("time goes on with the clock, and is persisted with commits", "[sequencer]") {
  Rig rig;
  rig.start();
  const Time before = rig.sequencer->now();
  for (int i = 0; i < 5; ++i) {
    rig.clock.advance(milliseconds(400));
    rig.one_more_turn();
  }
  CHECK(rig.sequencer->now() == before + milliseconds(2000));
  rig.must<NamespaceOpened>(open_namespace("a"));
  const Time persisted = rig.sequencer->now();
  rig.start();
  CHECK(rig.sequencer->now() >= persisted);
}

TEST_CASE("ticks come with the clock, and one that changes nothing is not written", "[sequencer]") {
  Rig rig;
  rig.start();
  rig.one_more_turn();
  const uint64_t commits = rig.disk.commits();
  const uint64_t batches = rig.sequencer->stats().batches;
  rig.one_more_turn();
  CHECK(rig.sequencer->stats().batches == batches);  // the clock stands still
  for (uint64_t i = 1; i <= 3; ++i) {
    rig.clock.advance(milliseconds(1));
    rig.until([&] { return rig.sequencer->stats().batches == batches + i; });
  }
  CHECK(rig.disk.commits() == commits);
}

// ---- Runs
// -----------------------------------------------------------------------------------------------------

TEST_CASE("every run raises the epoch and keeps the store id", "[sequencer]") {
  Rig rig;
  rig.start({7, 7});
  CHECK(rig.epoch() == 1);
  rig.must<NamespaceOpened>(open_namespace("a"));
  rig.start({8, 8});
  CHECK(rig.epoch() == 2);
  CHECK(rig.sequencer->view()->meta().store_id == StoreId{7, 7});
  CHECK(rig.has_namespace("a"));
  CHECK(rig.listener.told().empty());  // nobody was attached yet
}

TEST_CASE("a store that was moved takes the fresh id, once", "[sequencer]") {
  Rig rig;
  rig.start({7, 7});
  rig.sequencer->stop();
  rig.disk.set_moved();
  rig.start({8, 8});
  CHECK(rig.sequencer->view()->meta().store_id == StoreId{8, 8});
  CHECK(rig.epoch() == 2);
  rig.start({9, 9});
  CHECK(rig.sequencer->view()->meta().store_id == StoreId{8, 8});
}

TEST_CASE("a store that cannot be written does not start", "[sequencer]") {
  Rig rig;
  rig.disk.fail(MemoryDisk::Fault::kLost);
  const Result<> started = rig.try_start();
  REQUIRE_FALSE(started);
  CHECK(started.error().reason == Reason::kStoreDegraded);
}

TEST_CASE("stopping answers everything that is queued and makes it durable", "[sequencer]") {
  SequencerConfig config = quick_config();
  config.flush_interval = seconds(3600);  // only stop() flushes
  Rig rig(config);
  rig.start();
  std::atomic<int> answered = 0;
  {
    Held held(rig);
    for (int i = 0; i < 50; ++i)
      rig.sequencer->submit(open_namespace("n" + std::to_string(i)),
                            [&](const Result<Outcome>& outcome) {
                              if (outcome) ++answered;
                            });
    std::thread stopper([&] { rig.sequencer->stop(); });
    held.release();
    stopper.join();
  }
  CHECK(answered == 50);
  const Result<Outcome> late = rig.call(open_namespace("late"));
  REQUIRE_FALSE(late);
  CHECK(late.error().reason == Reason::kUnavailable);
  CHECK(rig.has_namespace("n49"));  // the view stays

  rig.disk.power_cut();
  rig.start();
  CHECK(rig.has_namespace("n49"));
}

// ---- Durability
// -------------------------------------------------------------------------------------------------

TEST_CASE("interval: a commit is fsynced within the interval, without another one", "[sequencer]") {
  Rig rig;
  rig.start();
  rig.must<NamespaceOpened>(open_namespace("a"));
  rig.until([&] { return rig.disk.syncs() >= 2; });
  rig.disk.power_cut();
  rig.start();
  CHECK(rig.has_namespace("a"));
}

TEST_CASE("sync: every commit is fsynced before its reply", "[sequencer]") {
  SequencerConfig config = quick_config();
  config.durability = Durability::kSync;
  Rig rig(config);
  rig.start();
  for (int i = 0; i < 5; ++i) {
    rig.must<NamespaceOpened>(open_namespace("n" + std::to_string(i)));
    CHECK(rig.disk.syncs() == rig.disk.commits());
  }
}

// ---- Events and long work
// ---------------------------------------------------------------------------------------

TEST_CASE("events follow their change, numbered under the epoch", "[sequencer]") {
  Rig rig;
  rig.start();
  rig.must<NamespaceOpened>(open_namespace("a"));
  rig.must<NamespaceOpened>(open_namespace("b"));
  rig.one_more_turn();
  const EventLog::Page page = rig.sequencer->events().read(1, 1, 10);
  REQUIRE(page.events.size() == 3);
  CHECK(page.events[0].event.kind == EventKind::kServerStarted);
  CHECK(page.events[1].event.kind == EventKind::kNamespaceOpened);
  CHECK(page.events[2].sequence == 3);
  CHECK(page.events[2].wall_millis > 0);
}

// A worker with a pool in which `count` replicas are reserved.
SessionId worker_with_replicas(Rig& rig, uint32_t count) {
  const testing::StoringWorker worker = testing::storing_worker(rig, count);
  REQUIRE(rig.must<Reserved>(worker.reserve(1, 0, count)).pools.size() == count);
  return worker.caller.session;
}

TEST_CASE("calls are answered between the slices of a job, which ends by itself", "[sequencer]") {
  SequencerConfig config = quick_config();
  config.directory.slice_records = 1;
  Rig rig(config);
  rig.start();
  const SessionId worker = worker_with_replicas(rig, 100);
  REQUIRE(rig.sequencer->view()->replicas().size() == 100);

  const Answer<size_t> left;
  {
    Held held(rig);
    rig.sequencer->submit(
        FenceByOperator{worker, "", "test", false}, [&, left](const Result<Outcome>&) {
          rig.sequencer->submit(open_namespace("b"), [&, left](const Result<Outcome>&) {
            left.set(rig.sequencer->view()->replicas().size());
          });
        });
  }
  const size_t replicas_left = left.get();
  CHECK(replicas_left > 0);
  CHECK(replicas_left <= 100);
  rig.until([&] { return rig.sequencer->view()->jobs().empty(); });
  CHECK(rig.sequencer->view()->replicas().size() == 0);
}

TEST_CASE("a job that was cut short goes on in the next run", "[sequencer]") {
  SequencerConfig config = quick_config();
  config.directory.slice_records = 1;
  Rig rig(config);
  rig.start();
  const SessionId worker = worker_with_replicas(rig, 100);
  // Stopped right after the fence was answered.
  std::thread stopper;
  const Answer<bool> fenced;
  rig.sequencer->submit(FenceByOperator{worker, "", "test", false},
                        [&, fenced](const Result<Outcome>&) {
                          stopper = std::thread([&] { rig.sequencer->stop(); });
                          fenced.set(true);
                        });
  fenced.get();
  stopper.join();
  rig.start();
  rig.until([&] { return rig.sequencer->view()->jobs().empty(); });
  CHECK(rig.sequencer->view()->replicas().size() == 0);
}

}  // namespace
}  // namespace berth
