// Which replicas lie in runs, and what became of them since: what a store must know to write the
// next change of one. A run is a record of replicas that became READY together; see rocks_runs.h.
//
//   run of 7 to 11:   7   8   9   10  11
//                         └ gone  └ changed: RETIRING        live: 7, 9, 10, 11
//
// Runs never overlap. About a byte a replica in runs of a hundred. Knows no disk.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "server/directory/types.h"

namespace berth {

inline constexpr size_t kRunReplicasMax = 128;

struct Run {
  struct Change {
    uint8_t index = 0;
    ReplicaState state = ReplicaState::kReady;
    Why why = Why::kNone;
    friend bool operator==(const Change&, const Change&) = default;
  };
  uint64_t first = 0;
  uint32_t count = 0;
  std::bitset<kRunReplicasMax> gone;
  std::bitset<kRunReplicasMax> changed;
  std::vector<Change> changes;  // of the changed ones, in no order: live items that are not READY
  bool is_dirty = false;        // since the changes were last written
  bool is_sparse = false;       // waits to be written anew

  size_t live() const { return count - gone.count(); }
  bool covers(uint64_t id) const { return id >= first && id - first < count; }
  void change(size_t index, ReplicaState state, Why why);
  void drop(size_t index);

 private:
  void restore(size_t index);
};

class RunIndex {
 public:
  // The run whose live item this is, or nullptr.
  Run* find(uint64_t id);
  Run* find_run(uint64_t first);
  // Whether any id of [first, first + count) lies in a run, live or gone.
  bool overlaps(uint64_t first, size_t count) const;
  Run& insert(Run run);
  void erase(uint64_t first);
  void clear();
  bool is_empty() const { return runs_.empty(); }

 private:
  std::map<uint64_t, Run> runs_;  // by first id
  Run* found_ = nullptr;          // last: what changes together was made together
};

}  // namespace berth
