// A store that cannot be written: the sequencer degrades, loses nothing that was answered, and goes
// on under a new epoch once the store is back.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/unit/sequencer/rig.h"

namespace berth {
namespace {

using testing::Answer;
using testing::Held;
using testing::open_namespace;
using testing::quick_config;
using testing::Rig;

TEST_CASE("a failed commit degrades the store until it is back, under a new epoch",
          "[sequencer][trouble]") {
  const auto fault = GENERATE(MemoryDisk::Fault::kLost, MemoryDisk::Fault::kLanded);
  SequencerConfig config = quick_config();
  config.flush_interval = seconds(3600);
  Rig rig(config);
  rig.start();
  rig.must<NamespaceOpened>(open_namespace("before"));
  rig.disk.fail(fault);
  const Result<Outcome> failed = rig.call(open_namespace("unknown"));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().reason == Reason::kStoreDegraded);

  // Memory is what it was; reads go on, mutations are refused at once.
  CHECK(rig.has_namespace("before"));
  CHECK_FALSE(rig.has_namespace("unknown"));
  const Result<Outcome> later = rig.call(open_namespace("later"));
  REQUIRE_FALSE(later);
  CHECK(later.error().reason == Reason::kStoreDegraded);
  rig.until([&] { return rig.listener.told().size() == 1; });
  CHECK_THAT(rig.listener.told()[0], Catch::StartsWith("degraded: "));
  CHECK(rig.sequencer->is_degraded());
  CHECK_FALSE(rig.sequencer->degraded_reason().empty());
  CHECK(rig.sequencer->stats().commit_failures == 1);

  // As long as the disk is broken, trying again changes nothing.
  for (int i = 0; i < 3; ++i) {
    rig.clock.advance(config.reopen_interval);
    rig.one_more_turn();
    CHECK(rig.sequencer->is_degraded());
  }
  rig.disk.mend();
  rig.clock.advance(config.reopen_interval);
  rig.until([&] { return rig.listener.told().size() == 3; });
  CHECK(rig.listener.told()[1] == "epoch 2");
  CHECK(rig.listener.told()[2] == "healthy");
  CHECK_FALSE(rig.sequencer->is_degraded());
  CHECK(rig.sequencer->degraded_reason().empty());
  CHECK(rig.epoch() == 2);
  CHECK(rig.sequencer->events().epoch() == 2);
  CHECK(rig.has_namespace("before"));
  CHECK(rig.has_namespace("unknown") == (fault == MemoryDisk::Fault::kLanded));
  rig.must<NamespaceOpened>(open_namespace("later"));
}

TEST_CASE("what is queued behind a failed commit is refused in its order", "[sequencer][trouble]") {
  SequencerConfig config = quick_config();
  config.batch_commands_max = 3;
  Rig rig(config);
  rig.start();
  std::vector<int> answered;
  bool all_refused = true;
  const Answer<bool> done;
  {
    Held held(rig);
    rig.disk.fail(MemoryDisk::Fault::kLost);
    for (int i = 0; i < 10; ++i)
      rig.sequencer->submit(
          open_namespace("n" + std::to_string(i)), [&, i, done](const Result<Outcome>& outcome) {
            all_refused = all_refused && outcome.error().reason == Reason::kStoreDegraded;
            answered.push_back(i);
            if (i == 9) done.set(true);
          });
  }
  done.get();
  CHECK(all_refused);
  CHECK(answered == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("ids of a batch that was lost are never made again", "[sequencer][trouble]") {
  SequencerConfig config = quick_config();
  Rig rig(config);
  rig.start();
  const auto worker = [](uint64_t n) {
    OpenWorker open;
    open.request_token = {n, n};
    open.name = "w" + std::to_string(n);
    open.node = "n" + std::to_string(n);
    open.boot_id = {6, n};
    return open;
  };
  const SessionId first = rig.must<WorkerOpened>(worker(1)).session;
  rig.disk.fail_next(MemoryDisk::Fault::kLost);
  REQUIRE_FALSE(rig.call(worker(2)));
  rig.clock.advance(config.reopen_interval);
  rig.until([&] { return !rig.sequencer->is_degraded(); });
  const SessionId after = rig.must<WorkerOpened>(worker(3)).session;
  CHECK(epoch_of(first) == 1);
  CHECK(epoch_of(after) == 2);
}

TEST_CASE("a failed fsync degrades too, and loses nothing", "[sequencer][trouble]") {
  SequencerConfig config = quick_config();
  Rig rig(config);
  rig.start();
  rig.disk.fail_next_flush();
  rig.must<NamespaceOpened>(open_namespace("a"));
  rig.until([&] { return rig.sequencer->is_degraded(); });
  rig.clock.advance(config.reopen_interval);
  rig.until([&] { return !rig.sequencer->is_degraded(); });
  CHECK(rig.has_namespace("a"));
  CHECK(rig.epoch() == 2);
}

TEST_CASE("a degraded sequencer stops like any other", "[sequencer][trouble]") {
  Rig rig;
  rig.start();
  rig.disk.fail(MemoryDisk::Fault::kLost);
  REQUIRE_FALSE(rig.call(open_namespace("a")));
  rig.sequencer->stop();
  CHECK(rig.call(open_namespace("b")).error().reason == Reason::kUnavailable);
}

}  // namespace
}  // namespace berth
