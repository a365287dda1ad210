#include "server/store/run_index.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace berth {

void Run::restore(size_t index) {
  if (!changed.test(index)) return;
  changed.reset(index);
  const auto it = std::find_if(changes.begin(), changes.end(),
                               [index](const Change& c) { return c.index == index; });
  *it = changes.back();
  changes.pop_back();
}

void Run::change(size_t index, ReplicaState state, Why why) {
  restore(index);
  if (state == ReplicaState::kReady && why == Why::kNone) return;
  changed.set(index);
  changes.push_back({static_cast<uint8_t>(index), state, why});
}

void Run::drop(size_t index) {
  restore(index);
  gone.set(index);
}

Run* RunIndex::find(uint64_t id) {
  if (!found_ || !found_->covers(id)) {
    auto it = runs_.upper_bound(id);
    if (it == runs_.begin() || !(--it)->second.covers(id)) return nullptr;
    found_ = &it->second;
  }
  return found_->gone.test(id - found_->first) ? nullptr : found_;
}

Run* RunIndex::find_run(uint64_t first) {
  const auto it = runs_.find(first);
  return it == runs_.end() ? nullptr : &it->second;
}

bool RunIndex::overlaps(uint64_t first, size_t count) const {
  const auto next = runs_.lower_bound(first);
  if (next != runs_.end() && next->first - first < count) return true;
  return next != runs_.begin() && std::prev(next)->second.covers(first);
}

Run& RunIndex::insert(Run run) {
  const uint64_t first = run.first;
  BERTH_CHECK(!overlaps(first, run.count), "runs never overlap");
  return runs_.emplace_hint(runs_.end(), first, std::move(run))->second;
}

void RunIndex::erase(uint64_t first) {
  found_ = nullptr;
  runs_.erase(first);
}

void RunIndex::clear() {
  found_ = nullptr;
  runs_.clear();
}

}  // namespace berth
