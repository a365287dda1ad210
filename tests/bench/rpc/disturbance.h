// What happens to the server while a run is measured, so that its cost to everybody else shows:
//
//   eviction  a member of its own stores into a full pool at a steady pace, so that the policy
//   evicts
//             as much all the time
//   fence     an operator fences a member that owns many objects; a job takes them away in slices
//   stall     every fsync of berthd takes 200 ms longer, while a member of its own stores
//   restart   berthd is killed and started again; members attach with their ledgers
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/error.h"
#include "tests/bench/rpc/fleet.h"

namespace berth::bench {

enum class During : uint8_t { kNothing, kEviction, kFence, kStall, kRestart };
std::string name_of(During during);

struct DisturbanceSettings {
  During during = During::kNothing;
  uint64_t objects = 200'000;  // that are fenced; that the full pool has room for
  double evicted_per_second = 20'000;
  uint64_t seed = 1;
};

// When, after prepare() has returned, a run is measured.
struct MeasuredWindow {
  double from_seconds = 0;
  double to_seconds = 0;
};

class Disturbance {
 public:
  virtual ~Disturbance() = default;
  // Before a run; not measured.
  virtual Result<> prepare() = 0;
  // Happens; on a thread of its own. What it took and did, by name.
  virtual Result<std::map<std::string, double>> happen(const MeasuredWindow& window) = 0;
  // Cycles fail while it happens, and are begun again.
  virtual bool breaks_calls() const { return false; }
};

// Null for kNothing.
std::unique_ptr<Disturbance> make_disturbance(Fleet& fleet, const DisturbanceSettings& settings);

}  // namespace berth::bench
