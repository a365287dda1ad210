#include "server/directory/staged_runs.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

// The first range that ends at or behind the id.
template <class Ranges>
auto behind(Ranges& ranges, ReplicaId id) {
  return std::lower_bound(ranges.begin(), ranges.end(), id,
                          [](const auto& range, ReplicaId at) { return range.last < at; });
}

}  // namespace

std::vector<StagedRuns::Range>::const_iterator StagedRuns::range_of(ReplicaId id) const {
  const auto it = behind(ranges_, id);
  return it != ranges_.end() && it->first <= id ? it : ranges_.end();
}

bool StagedRuns::overlaps(ReplicaId first, ReplicaId last) const {
  const auto it = behind(ranges_, first);
  return it != ranges_.end() && it->first <= last;
}

void StagedRuns::push(Run run) {
  ranges_.insert(behind(ranges_, run.first()), {run.first(), run.last(), runs_.size()});
  runs_.push_back(std::move(run));
}

void StagedRuns::pop() {
  ranges_.erase(range_of(runs_.back().first()));
  runs_.pop_back();
}

std::optional<const Replica*> StagedRuns::find(ReplicaId id) const {
  const auto range = range_of(id);
  if (range == ranges_.end()) return std::nullopt;
  const Run& run = runs_[range->run];
  const uint64_t ahead = id.value() - range->first.value();
  const Replica* found = nullptr;
  if (ahead < run.replicas.size() && run.replicas[ahead].id == id) {
    found = &run.replicas[ahead];
  } else {
    const auto it = std::lower_bound(run.replicas.begin(), run.replicas.end(), id,
                                     [](const Replica& r, ReplicaId at) { return r.id < at; });
    if (it == run.replicas.end() || it->id != id) return std::nullopt;
    found = &*it;
  }
  return run.forgets ? nullptr : found;
}

void StagedRuns::override_at(ReplicaId id) {
  if (const auto range = range_of(id); range != ranges_.end())
    runs_[range->run].is_overridden = true;
}

}  // namespace berth
