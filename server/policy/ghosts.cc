#include "server/policy/ghosts.h"

#include <algorithm>

namespace berth::policy {

std::optional<Ghost> Ghosts::take(uint32_t fingerprint) {
  Ghost* const set = set_of(fingerprint);
  Ghost* const end = set + kWays;
  Ghost* const found = std::find_if(
      set, end, [&](const Ghost& g) { return g.is_set() && g.fingerprint == fingerprint; });
  if (found == end) return std::nullopt;
  const Ghost ghost = *found;
  std::move(found + 1, end, found);
  *(end - 1) = Ghost{};
  return ghost;
}

std::optional<Ghost> Ghosts::put(const Ghost& ghost, size_t resident) {
  if (resident > entries_.size()) grow();
  Ghost* const set = set_of(ghost.fingerprint);
  const Ghost displaced = set[kWays - 1];
  std::move_backward(set, set + kWays - 1, set + kWays);
  set[0] = ghost;
  return displaced.is_set() ? std::optional(displaced) : std::nullopt;
}

void Ghosts::grow() {
  // A set splits into two neighbours, so nothing is displaced and the order within sets stays.
  std::vector<Ghost> old(entries_.size() * 2);
  old.swap(entries_);
  for (size_t first = 0; first < old.size(); first += kWays)
    for (size_t i = kWays; i-- > 0;) {
      const Ghost& ghost = old[first + i];
      if (!ghost.is_set()) continue;
      Ghost* const set = set_of(ghost.fingerprint);
      std::move_backward(set, set + kWays - 1, set + kWays);
      set[0] = ghost;
    }
}

}  // namespace berth::policy
