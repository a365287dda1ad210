// The requests of a trace as chains of digests, given out in order to the members that a
// prefix-aware router sends them to. Each lap through the trace, and each start over, is under
// another salt: its chains share prefixes among themselves, as recorded, and nothing with an
// earlier lap. So the share of hits is the trace's own, lap after lap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/replay/trace.h"

namespace berth::bench {

class TraceSource {
 public:
  // At most `chunks_max` chunks of each request. The trace is not empty.
  TraceSource(const std::vector<replay::Request>& requests, uint64_t members, uint64_t chunks_max);

  // The digests of the next request of a member; of any, if the router sends it none.
  void next(uint64_t member, std::string& digests);
  void start_over();

  uint64_t requests() const { return requests_; }
  double mean_chunks() const { return mean_chunks_; }

 private:
  struct Share {
    std::vector<std::string> chains;
    uint64_t given = 0;
  };

  std::vector<Share> shares_;  // by member
  uint64_t requests_ = 0;
  double mean_chunks_ = 0;
  uint64_t starts_ = 0;
};

}  // namespace berth::bench
