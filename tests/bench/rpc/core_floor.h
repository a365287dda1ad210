// berthd's core without everything around it: decide() and install() over a directory in this
// process, one command at a time, no RPC, no store, no threads. What an item costs here is what no
// transport can take away.
#pragma once

#include <cstdint>

#include "tests/bench/core/core_rig.h"
#include "tests/bench/rpc/directory_flows.h"

namespace berth::bench {

class CoreFloor {
 public:
  // With so many objects in it.
  explicit CoreFloor(uint64_t population);

  // Items per second of cycles of the workload; commands are built outside of the measured time.
  double items_per_second(Workload workload, uint64_t batch, double seconds);

 private:
  Outcome run(const Command& command);
  uint64_t random_first(uint64_t batch);
  uint64_t probe_nanos(uint64_t batch);
  uint64_t acquire_nanos(uint64_t batch);
  uint64_t store_nanos(uint64_t batch);

  CoreRig rig_;
  CoreMember member_;
  const uint64_t population_;
  uint64_t passing_ = 0;  // objects that were stored and taken away
  uint64_t chance_ = 1;
  uint64_t spent_nanos_ = 0;  // within run()
};

}  // namespace berth::bench
