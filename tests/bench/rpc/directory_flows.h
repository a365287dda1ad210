// The workloads as flows:
//
//   probe              a chain of `batch` chunks that are all there
//   acquire + release  the same, protected and let go
//   reserve + commit   `batch` objects that nobody has stored yet
//   trace              a request of a trace: probe its chain, acquire and release what is there,
//                      reserve and commit the rest
//
// Every answer is checked: a figure of calls that missed or were refused would mean nothing.
#pragma once

#include <memory>
#include <vector>

#include "tests/bench/rpc/flow.h"
#include "tests/bench/rpc/member.h"
#include "tests/bench/rpc/trace_source.h"

namespace berth::bench {

enum class Workload : uint8_t { kProbe, kAcquire, kStore, kTrace };

// The fleet that the flows of a cell share.
struct FleetView {
  EventLoop& loop;
  std::vector<Member*> members;
};

struct FlowSettings {
  Workload workload = Workload::kProbe;
  Api api = Api::kUnary;
  uint64_t batch = 1;
  uint64_t seed = 1;
  Objects stores = Objects::kPassing;
  // Pools may be full: items that are skipped are no items, and no failure.
  bool tolerates_skips = false;
  TraceSource* trace = nullptr;  // of kTrace
};

// Flow number `index` of a cell.
std::unique_ptr<Flow> make_flow(const FleetView& fleet, const FlowSettings& settings,
                                uint64_t index);
std::unique_ptr<Flow> make_trace_flow(const FleetView& fleet, const FlowSettings& settings,
                                      uint64_t index);

}  // namespace berth::bench
