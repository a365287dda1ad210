// What engines do all day, at random, for a while: chains that many engines share are read and
// stored, handles and stores stay open across other work, stores are given up in the middle.
// Outages are ordinary and counted. What may never be is counted apart: a wrong byte under a handle
// that was valid to the end.
//
// The size of a chunk follows from its chain, so that pages run out in all shapes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/clock.h"
#include "worker/client/client.h"

namespace berth::testing {

struct OpenStore {
  uint64_t seed = 0;
  uint64_t first = 0;
  client::PendingStore store;
};
struct OpenLoad {
  uint64_t seed = 0;
  uint64_t first = 0;
  client::LoadHandle handle;
};
uint64_t count_wrong_bytes(const OpenLoad& open);
void write_granted(OpenStore& open, size_t from_percent, size_t to_percent);

struct ChurnOptions {
  uint64_t seed = 1;
  uint64_t chains = 16;
  uint64_t chunks_max = 16;  // of one chain
  uint64_t size_bytes = 4096;
  Duration length = seconds(1);
};

class Churn {
 public:
  Churn(Client& client, const client::Namespace& name_space, const ChurnOptions& options);

  // Runs until the time is over and everything that was opened is closed. "ok name=count ...".
  std::string run();

 private:
  struct Counts {
    uint64_t requests = 0;
    uint64_t chunks = 0;  // read, whole and valid to the end
    uint64_t wrong = 0;   // bytes of such chunks
    uint64_t lost = 0;    // handles whose protection was over before the end of the read
    uint64_t committed = 0;
    uint64_t skipped = 0;
    uint64_t closed = 0;   // granted and not committed
    uint64_t outages = 0;  // worker or server out of reach
    uint64_t errors = 0;
  };

  uint64_t below(uint64_t n);
  uint64_t size_of(uint64_t chain) const;
  void request();
  void store(uint64_t chain, uint64_t first, uint64_t count);
  void finish(OpenStore& open);
  void check(const OpenLoad& open);
  void close_oldest_load();
  void close_oldest_store();

  Client& client_;
  const client::Namespace name_space_;
  const ChurnOptions options_;
  const SteadyClock clock_;
  uint64_t drawn_ = 0;
  Counts counts_;
  std::deque<OpenLoad> loads_;
  std::deque<OpenStore> stores_;
};

}  // namespace berth::testing
