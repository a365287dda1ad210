// The engine's part of one request, against whatever holds the blocks: ask how much of the prompt's
// prefix is there, read and verify that much, store the rest. Counts; decides nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "common/clock.h"
#include "common/error.h"
#include "worker/replay/content.h"
#include "worker/replay/counts.h"
#include "worker/replay/trace.h"

namespace berth::replay {

// Where an engine's blocks are. An outage is an answer, as everywhere in Berth.
class BlockCache {
 public:
  struct Probed {
    uint32_t usable_chunks = 0;
    bool is_unavailable = false;
  };
  struct Loaded {
    uint32_t good_chunks = 0;  // read, verified, and protected to the end
    uint64_t item_count = 0;   // items verified in them
    uint64_t wrong_items = 0;  // items with a wrong byte, although the handle was valid
    bool is_unavailable = false;
  };

  virtual ~BlockCache() = default;
  virtual Result<Probed> probe(std::span<const Digest> chain) = 0;
  // Reads and verifies the longest prefix of the chain that it gets.
  virtual Result<Loaded> load(std::span<const Digest> chain) = 0;
  // Writes what is not there yet of the chain's rest, whose first chunk is number `first` of the
  // chain, and adds to the store columns of `counts`.
  virtual Result<> store(std::span<const Digest> rest, uint32_t first, Counts& counts) = 0;
};

class Engine {
 public:
  Engine(BlockCache& cache, const Clock& clock) : cache_(cache), clock_(clock) {}

  void serve(const Request& request);
  const Counts& counts() const { return counts_; }

 private:
  uint32_t probe(std::span<const Digest> chain, bool& is_unavailable);
  uint32_t load(std::span<const Digest> chain, bool& is_unavailable);
  void store(std::span<const Digest> rest, uint32_t first);

  BlockCache& cache_;
  const Clock& clock_;
  Counts counts_;
};

}  // namespace berth::replay
