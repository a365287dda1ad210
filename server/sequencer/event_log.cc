#include "server/sequencer/event_log.h"

#include <algorithm>
#include <string>

namespace berth {

void EventLog::begin_epoch(Epoch epoch) {
  {
    const std::lock_guard lock(mutex_);
    epoch_ = epoch;
    next_ = 1;
    kept_.clear();
  }
  notify();
}

void EventLog::append(const std::vector<Event>& events, int64_t wall_millis) {
  if (events.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (const Event& event : events) kept_.push_back({next_++, wall_millis, event});
    while (kept_.size() > events_max_) kept_.pop_front();
  }
  notify();
}

EventLog::Page EventLog::read(Epoch epoch, uint64_t from, size_t events_max) const {
  const std::lock_guard lock(mutex_);
  Page page{epoch_, {}, next_, false};
  if (from == 0) return page;
  const uint64_t oldest = next_ - kept_.size();
  page.gap = epoch != epoch_ || from < oldest || from > next_;
  const uint64_t first = page.gap ? oldest : from;
  const size_t skipped = static_cast<size_t>(first - oldest);
  const size_t count = std::min(events_max, kept_.size() - skipped);
  const auto begin = kept_.begin() + static_cast<ptrdiff_t>(skipped);
  page.events.assign(begin, begin + static_cast<ptrdiff_t>(count));
  page.next = first + count;
  return page;
}

Epoch EventLog::epoch() const {
  const std::lock_guard lock(mutex_);
  return epoch_;
}

uint64_t EventLog::last_sequence() const {
  const std::lock_guard lock(mutex_);
  return next_ - 1;
}

Result<> EventLog::watch(std::weak_ptr<EventWatcher> watcher) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watchers_, [](const auto& held) { return held.expired(); });
  if (watchers_.size() >= kEventWatchersMax)
    return refuse(Reason::kLimitReached,
                  "events: " + std::to_string(kEventWatchersMax) + " readers follow already");
  watchers_.push_back(std::move(watcher));
  return {};
}

// Outside of the lock, because a watcher may read at once.
void EventLog::notify() {
  std::vector<std::shared_ptr<EventWatcher>> awake;
  {
    const std::lock_guard lock(mutex_);
    if (watchers_.empty()) return;
    std::erase_if(watchers_, [](const auto& held) { return held.expired(); });
    for (const auto& held : watchers_)
      if (auto watcher = held.lock()) awake.push_back(std::move(watcher));
  }
  for (const auto& watcher : awake) watcher->on_events();
}

}  // namespace berth
