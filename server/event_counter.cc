#include "server/event_counter.h"

#include <algorithm>
#include <string>

namespace berth {
namespace {

constexpr size_t kKindCount = static_cast<size_t>(EventKind::kJobDone) + 1;
constexpr size_t kEventsPerRead = 1024;

// Kinds that say what happened to replicas; `count` says to how many.
constexpr EventKind kReplicaKinds[] = {
    EventKind::kReserved, EventKind::kReady,   EventKind::kAborted,
    EventKind::kRetiring, EventKind::kFreed,   EventKind::kQuarantined,
    EventKind::kDropped,  EventKind::kAdopted, EventKind::kWriteOverdue};

template <class Kinds>
std::vector<std::string> labels_of(const Kinds& kinds) {
  std::vector<std::string> labels;
  for (const EventKind kind : kinds) labels.emplace_back(name_of(kind));
  return labels;
}

std::vector<EventKind> all_kinds() {
  std::vector<EventKind> kinds;
  for (size_t i = 0; i < kKindCount; ++i) kinds.push_back(static_cast<EventKind>(i));
  return kinds;
}

}  // namespace

EventCounter::EventCounter(MetricsRegistry& registry, EventLog& log)
    : log_(log), replicas_(kKindCount, nullptr) {
  auto& events = registry.counters({"berth_events_total", "Events announced, by kind."},
                                   {{"kind", labels_of(all_kinds())}});
  for (const EventKind kind : all_kinds()) events_.push_back(&events.with({name_of(kind)}));
  auto& replicas =
      registry.counters({"berth_replica_changes_total", "Replicas, by what happened to them."},
                        {{"kind", labels_of(kReplicaKinds)}});
  for (const EventKind kind : kReplicaKinds)
    replicas_[static_cast<size_t>(kind)] = &replicas.with({name_of(kind)});
}

void EventCounter::on_events() {
  const std::lock_guard lock(mutex_);
  for (;;) {
    const EventLog::Page page = log_.read(epoch_, from_, kEventsPerRead);
    epoch_ = page.epoch;
    from_ = page.next;
    for (const NumberedEvent& numbered : page.events) {
      const auto kind = static_cast<size_t>(numbered.event.kind);
      events_[kind]->add();
      if (replicas_[kind]) replicas_[kind]->add(std::max<uint64_t>(numbered.event.count, 1));
    }
    if (page.events.empty()) return;
  }
}

}  // namespace berth
