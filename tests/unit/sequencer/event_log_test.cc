#include "server/sequencer/event_log.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

namespace berth {
namespace {

// Events that count up from `first`, so that a test can tell them apart.
std::vector<Event> events(uint64_t first, uint64_t count) {
  std::vector<Event> out;
  for (uint64_t i = 0; i < count; ++i)
    out.push_back({.kind = EventKind::kReady, .count = first + i});
  return out;
}

std::vector<uint64_t> sequences(const EventLog::Page& page) {
  std::vector<uint64_t> out;
  for (const NumberedEvent& event : page.events) {
    CHECK(event.sequence == event.event.count);  // by construction of these tests
    out.push_back(event.sequence);
  }
  return out;
}

using Numbers = std::vector<uint64_t>;

TEST_CASE("events are numbered from 1 and read from where a reader stopped",
          "[sequencer][events]") {
  EventLog log(100);
  log.begin_epoch(3);
  CHECK(log.last_sequence() == 0);
  log.append(events(1, 3), 1000);
  log.append({}, 2000);
  log.append(events(4, 2), 3000);
  CHECK(log.last_sequence() == 5);

  const EventLog::Page first = log.read(3, 1, 2);
  CHECK(sequences(first) == Numbers{1, 2});
  CHECK(first.next == 3);
  const EventLog::Page second = log.read(3, first.next, 10);
  CHECK(sequences(second) == Numbers{3, 4, 5});
  CHECK(second.events[0].wall_millis == 1000);
  CHECK(second.events[1].wall_millis == 3000);
  CHECK(second.next == 6);
  const EventLog::Page last = log.read(3, second.next, 10);
  CHECK(last.events.empty());
  CHECK(last.next == 6);
  CHECK_FALSE(first.gap);
  CHECK_FALSE(second.gap);
  CHECK_FALSE(last.gap);
}

// The example of event_log.h.
TEST_CASE("a reader that fell behind is told of the gap and goes on with the oldest kept event",
          "[sequencer][events]") {
  EventLog log(4);
  log.begin_epoch(1);
  log.append(events(1, 40), 0);
  log.append(events(41, 4), 0);
  CHECK(sequences(log.read(1, 43, 10)) == Numbers{43, 44});
  CHECK_FALSE(log.read(1, 43, 10).gap);
  const EventLog::Page behind = log.read(1, 7, 10);
  CHECK(behind.gap);
  CHECK(sequences(behind) == Numbers{41, 42, 43, 44});
  CHECK(behind.next == 45);
}

TEST_CASE("a number of another epoch, or from the future, is a gap", "[sequencer][events]") {
  EventLog log(10);
  log.begin_epoch(1);
  log.append(events(1, 3), 0);
  CHECK(log.read(1, 9, 10).gap);
  log.begin_epoch(2);
  log.append(events(1, 2), 0);
  const EventLog::Page page = log.read(1, 2, 10);
  CHECK(page.gap);
  CHECK(page.epoch == 2);
  CHECK(sequences(page) == Numbers{1, 2});
}

TEST_CASE("zero means from now on", "[sequencer][events]") {
  EventLog log(10);
  log.begin_epoch(1);
  log.append(events(1, 3), 0);
  const EventLog::Page page = log.read(0, 0, 10);
  CHECK(page.events.empty());
  CHECK_FALSE(page.gap);
  CHECK(page.next == 4);
}

class CountingWatcher final : public EventWatcher {
 public:
  explicit CountingWatcher(const EventLog& log) : log_(log) {}
  void on_events() override {
    seen.push_back(log_.last_sequence());
  }  // reading inside the call must not deadlock
  std::vector<uint64_t> seen;

 private:
  const EventLog& log_;
};

TEST_CASE("watchers are told of every append and of a new epoch, as long as they live",
          "[sequencer][events]") {
  EventLog log(10);
  auto watcher = std::make_shared<CountingWatcher>(log);
  REQUIRE(log.watch(watcher));
  log.begin_epoch(1);
  log.append(events(1, 2), 0);
  log.append({}, 0);
  log.append(events(3, 1), 0);
  CHECK(watcher->seen == Numbers{0, 2, 3});
  watcher.reset();
  log.append(events(4, 1), 0);
}

TEST_CASE("watchers are bounded, and those that are gone do not count", "[sequencer][events]") {
  EventLog log(10);
  std::vector<std::shared_ptr<CountingWatcher>> watchers;
  for (size_t i = 0; i < kEventWatchersMax; ++i) {
    watchers.push_back(std::make_shared<CountingWatcher>(log));
    REQUIRE(log.watch(watchers.back()));
  }
  const auto one_more = std::make_shared<CountingWatcher>(log);
  const Result<> refused = log.watch(one_more);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kLimitReached);
  watchers.pop_back();
  CHECK(log.watch(one_more));
}

}  // namespace
}  // namespace berth
