// The event stream: what was announced, numbered from 1 under each epoch, the newest `events_max`
// of it kept. A reader asks from a number onwards; one that fell behind is told that there is a gap
// and goes on with the oldest kept event.
//
//   kept:  [ 41 | 42 | 43 | 44 ]     read(43) -> 43 44, next 45     read(7) -> 41 42 43 44, next
//   45, gap
//
// Thread-safe. The sequencer appends; watchers are told that there is something to read, on the
// sequencer's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "common/error.h"
#include "common/ids.h"
#include "server/directory/event.h"

namespace berth {

struct NumberedEvent {
  uint64_t sequence = 0;
  int64_t wall_millis = 0;  // since 1970, for people
  Event event;
};

// Somebody who follows the stream. on_events() says that read() has more than before (or that the
// epoch changed); it must not block. It may come once more while its owner is letting go, because
// the log only holds it weakly.
class EventWatcher {
 public:
  virtual ~EventWatcher() = default;
  virtual void on_events() = 0;
};

// Each watcher is called after every batch, so their number bounds what a batch pays for them.
inline constexpr size_t kEventWatchersMax = 64;

class EventLog {
 public:
  explicit EventLog(size_t events_max) : events_max_(events_max) {}

  // Numbers start again from 1; events of the old epoch are dropped.
  void begin_epoch(Epoch epoch);
  void append(const std::vector<Event>& events, int64_t wall_millis);

  struct Page {
    Epoch epoch = 0;
    std::vector<NumberedEvent> events;
    uint64_t next = 0;  // to ask for next
    bool gap = false;   // what was asked for is partly no longer kept, or belongs to another epoch
  };
  // From number `from` of `epoch` onwards, at most `events_max` events. Zero for `from`: from now
  // on.
  Page read(Epoch epoch, uint64_t from, size_t events_max) const;

  Epoch epoch() const;
  // Number of the newest event; zero when there is none yet.
  uint64_t last_sequence() const;

  // Errors: kLimitReached.
  Result<> watch(std::weak_ptr<EventWatcher> watcher);

 private:
  void notify();

  const size_t events_max_;
  mutable std::mutex mutex_;  // guards everything below
  Epoch epoch_ = 0;
  uint64_t next_ = 1;
  std::deque<NumberedEvent> kept_;
  std::vector<std::weak_ptr<EventWatcher>> watchers_;
};

}  // namespace berth
