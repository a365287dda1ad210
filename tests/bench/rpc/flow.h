// A flow is one caller: it runs a cycle of calls (reserve, then commit) from start to end, again
// and again, and tells its owner of each end. At most one cycle at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/error.h"
#include "tests/bench/rpc/directory_call.h"

namespace berth::bench {

class Flow;

class FlowOwner {
 public:
  virtual ~FlowOwner() = default;
  // May start the flow again.
  virtual void on_cycle(Flow& flow, uint64_t items) = 0;
  virtual void on_failure(Flow& flow, const Error& why) = 0;
};

// What a cycle was, for an echo of it.
struct RecordedCycle {
  uint64_t items = 0;
  std::vector<MessageSizes> calls;
};

class Flow {
 public:
  virtual ~Flow() = default;
  virtual void start() = 0;

  FlowOwner* owner = nullptr;   // set before the first start
  uint64_t intended_nanos = 0;  // when the cycle under way was meant to start
  // Every cycle is recorded while the log is on.
  MessageLog log;
  std::vector<RecordedCycle> recorded;

 protected:
  void end_cycle(uint64_t items) {
    if (log.is_on) recorded.push_back({items, std::move(log.calls)});
    log.calls.clear();
    owner->on_cycle(*this, items);
  }
};

using Flows = std::vector<std::unique_ptr<Flow>>;

}  // namespace berth::bench
