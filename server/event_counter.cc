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
  for (const auto kind : kinds) labels.emplace_back(name_of(kind));
  return labels;
}

std::vector<Why> all_reasons() {
  std::vector<Why> reasons;
  for (int i = 1; i <= static_cast<int>(kWhyLast); ++i) reasons.push_back(static_cast<Why>(i));
  return reasons;
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
  auto& retired =
      registry.counters({"berth_evicted_replicas_total", "Replicas that began to retire, by why."},
                        {{"reason", labels_of(all_reasons())}});
  for (const Why why : all_reasons()) retired_.emplace(name_of(why), &retired.with({name_of(why)}));
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
      const uint64_t count = std::max<uint64_t>(numbered.event.count, 1);
      if (replicas_[kind]) replicas_[kind]->add(count);
      if (numbered.event.kind != EventKind::kRetiring) continue;
      if (const auto why = retired_.find(numbered.event.reason); why != retired_.end())
        why->second->add(count);
    }
    if (page.events.empty()) return;
  }
}

}  // namespace berth
