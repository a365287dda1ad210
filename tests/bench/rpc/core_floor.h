// berthd's core without everything around it: decide() and install() over a directory in this
// process, one command at a time, no RPC, no store, no threads. What an item costs here is what no
// transport can take away.
#pragma once

#include <cstdint>
#include <vector>

#include "server/sequencer/decide.h"
#include "tests/bench/rpc/directory_flows.h"

namespace berth::bench {

class CoreFloor {
 public:
  // With so many objects in it.
  explicit CoreFloor(uint64_t population);

  // Items per second of cycles of the workload; commands are built outside of the measured time.
  double items_per_second(Workload workload, uint64_t batch, double seconds);

 private:
  template <class Expected>
  Expected run(const Command& command);
  std::vector<Digest> chain(uint64_t first, uint64_t count) const;
  uint64_t random_first(uint64_t batch);
  void probe_once(uint64_t batch);
  void acquire_once(uint64_t batch);
  // Returns the replicas.
  std::vector<ReplicaId> store_once(uint64_t first_object, uint64_t batch);
  void forget_answers();
  void take_away(const std::vector<ReplicaId>& replicas);

  DirectoryConfig config_;
  Directory directory_;
  Time now_;
  Caller worker_;
  SessionId client_;
  NamespaceId namespace_;
  OperationNumber operation_ = 0;
  OperationNumber operations_told_ = 0;
  uint64_t population_ = 0;
  uint64_t passing_ = 0;  // objects that were stored and taken away
  uint64_t pages_ = 0;
  uint64_t chance_ = 1;
  uint64_t spent_nanos_ = 0;
};

}  // namespace berth::bench
