// Counts what became of single items: stores, commits, and where probes and acquires stopped. With
// the reason codes of the protocol as labels, so that a dashboard can say why nothing is stored.
#pragma once

#include <vector>

#include "berth/v1/directory.pb.h"
#include "common/metrics_registry.h"
#include "server/directory/commands.h"

namespace berth::rpc {

class ItemMetrics {
 public:
  explicit ItemMetrics(MetricsRegistry& registry);

  // A command that was done. Answers repeated to a retry count again.
  void count(const Outcome& outcome);
  void count(const v1::ProbeResponse& response);

 private:
  std::vector<Counter*> stores_;    // by StoreCode
  std::vector<Counter*> commits_;   // by CommitCode
  std::vector<Counter*> probes_;    // by MissReason; 0: the whole chain is usable
  std::vector<Counter*> acquires_;  // the same
  Counter& probed_chunks_;
  Counter& acquired_chunks_;
};

}  // namespace berth::rpc
