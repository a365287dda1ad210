// What one seed's world is like: sizes, how often things happen, what goes wrong. Drawn from the
// seed, so that rare things meet each other in some seeds and leave others alone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "server/directory/config.h"
#include "server/policy/evictor.h"
#include "server/store/store.h"
#include "tests/sim/random.h"

namespace berth::sim {

// What the world does of its own accord in one step.
enum class Deed : uint8_t {
  // Engines
  kJoin,
  kStore,
  kWrite,
  kFinish,
  kGiveUp,
  kLoad,
  kRead,
  kRelease,
  kRenew,
  kProbe,
  kRepeat,
  kReuseNumber,
  kLeave,
  kEngineStream,  // the Join stream breaks
  // Faults
  kEngineCrash,
  kEngineFork,
  kForkEnds,
  kEngineStall,
  kWorkerCrash,
  kWorkerStall,
  kHostReboot,
  kServerCrash,
  kPowerCut,
  kServerStall,
  kCommitFails,
  kFlushFails,
  kDiskBreaks,
  kStoreMoved,
  kLinkBreaks,
  kOneWayBreak,
  kLateBreak,  // what was under way arrives long after the worker gave the connection up
  kTimeJump,
  kNeighboursBreak,  // a connection between two workers of a host
  // The operator
  kEvict,
  kEvictChunks,
  kEvictNamespace,
  kTrimPool,
  kDrain,
  kUndrain,
  kPin,
  kUnpin,
  kSetEviction,
  kQuota,
  kFence,      // of the dead
  kFenceLive,  // of somebody who is not
  kClosePool,  // by its worker
  kCount,
};
inline constexpr size_t kDeedCount = static_cast<size_t>(Deed::kCount);

// What engines say about the places of chunks in their prompts: hints, so anything goes.
enum class Hints : uint8_t { kNone, kTrue, kGarbage };

EvictionSetting some_setting(Random& random);

struct Weather {
  explicit Weather(Random& random);

  DirectoryConfig directory;
  policy::EvictorConfig evictor;
  Hints hints = Hints::kTrue;
  uint64_t diligence = 800;  // per mille: engines go on with a store by themselves
  Durability durability = Durability::kInterval;
  int64_t flush_every = 100;  // what a power cut takes
  std::array<uint32_t, kDeedCount> weights{};
  uint32_t weight_total = 0;
  int64_t step_max = 60;        // milliseconds between two deeds
  int64_t latency_max = 10;     // of one message
  uint64_t batch_commands = 8;  // of one decision
  uint64_t worker_count = 1;
  uint64_t engines_per_worker = 2;
  uint64_t node_count = 1;
  uint64_t pool_pages = 16;
  uint64_t budget_pages = 16;
  bool private_pool = false;
  bool shares_pools = false;  // workers of one host meet
  bool tight_host = false;    // memory of a dead predecessor leaves no room for the next pool
  uint64_t chunk_count = 10;
  uint64_t reattach_chunk = 4;
  uint64_t reattach_window = 2;
  uint64_t call_lost = 30;  // per mille: unary calls whose request or answer is lost
  uint64_t call_doubled = 30;
  uint64_t call_late = 0;  // per mille: requests that arrive when their sender may be dead

  Deed draw(Random& random) const;
};

}  // namespace berth::sim
