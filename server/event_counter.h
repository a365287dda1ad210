// Counts the event stream for the metrics: events by kind, replicas by what happened to them, and
// those that retired by why.
// A watcher of the log like any other; it outlives nothing and holds only how far it has read.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/metrics_registry.h"
#include "server/sequencer/event_log.h"

namespace berth {

class EventCounter final : public EventWatcher {
 public:
  EventCounter(MetricsRegistry& registry, EventLog& log);

  // Counts what was announced since the last time. On the sequencer's thread.
  void on_events() override;

 private:
  EventLog& log_;
  std::vector<Counter*> events_;    // by EventKind
  std::vector<Counter*> replicas_;  // by EventKind; null for kinds whose count is no replicas
  std::map<std::string, Counter*, std::less<>> retired_;  // by the name of Why

  std::mutex mutex_;  // guards the rest
  Epoch epoch_ = 0;
  uint64_t from_ = 1;
};

}  // namespace berth
