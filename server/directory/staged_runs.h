// Replicas that a draft writes together: what one reserve grants, one commit makes READY, one slice
// retires, one acknowledgement frees. They lie in arrays in the order of their ids, so that a batch
// costs no hash entry and no allocation a replica.
//
//   runs      [ 41 42 43 ... ][ 17 18 19 ]     in the order in which they were written
//   ranges_   17..19 ─▶ 1, 41..43 ─▶ 0         disjoint, by first id
//
// What is written once more, alone, overrides its place in the run: the draft looks there first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/directory/records.h"

namespace berth {

class StagedRuns {
 public:
  struct Run {
    std::vector<Replica> replicas;  // ascending ids
    std::vector<uint32_t> slots;    // beside them, in the replica table; empty: they are new
    size_t position = 0;            // how many single writes the draft had before it
    bool forgets = false;           // they go; `replicas` is what they were
    bool is_overridden = false;

    bool is_new() const { return slots.empty(); }
    ReplicaId first() const { return replicas.front().id; }
    ReplicaId last() const { return replicas.back().id; }
  };

  const std::vector<Run>& all() const { return runs_; }
  std::vector<Run>& all() { return runs_; }
  size_t size() const { return runs_.size(); }

  // Whether a run of these ids would lie across another.
  bool overlaps(ReplicaId first, ReplicaId last) const;
  // Not empty, and across no other.
  void push(Run run);
  void pop();

  // Nothing: in no run. nullptr: forgotten. Valid until its run is popped.
  std::optional<const Replica*> find(ReplicaId id) const;
  // This replica was written once more, alone.
  void override_at(ReplicaId id);

 private:
  struct Range {
    ReplicaId first;
    ReplicaId last;
    size_t run = 0;
  };
  // The range that the id may lie in, or the end.
  std::vector<Range>::const_iterator range_of(ReplicaId id) const;

  std::vector<Run> runs_;
  std::vector<Range> ranges_;
};

}  // namespace berth
