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

class Flow {
 public:
  virtual ~Flow() = default;
  virtual void start() = 0;
  // Of the calls of the last cycle; empty unless take_sizes() was called before it.
  virtual std::vector<MessageSizes> sizes() const { return {}; }
  virtual void take_sizes() {}

  FlowOwner* owner = nullptr;   // set before the first start
  uint64_t intended_nanos = 0;  // when the cycle under way was meant to start
};

using Flows = std::vector<std::unique_ptr<Flow>>;

}  // namespace berth::bench
