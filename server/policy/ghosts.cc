#include "server/policy/ghosts.h"

namespace berth::policy {

std::optional<Ghost> Ghosts::take(uint32_t fingerprint) {
  std::array<Ghost, kWays>& ghosts = sets_[set_of(fingerprint)].ghosts;
  const auto found = std::find_if(ghosts.begin(), ghosts.end(), [&](const Ghost& g) {
    return g.is_set() && g.fingerprint == fingerprint;
  });
  if (found == ghosts.end()) return std::nullopt;
  const Ghost ghost = *found;
  std::move(found + 1, ghosts.end(), found);
  ghosts.back() = Ghost{};
  return ghost;
}

std::optional<Ghost> Ghosts::put(const Ghost& ghost, size_t resident) {
  if (resident > sets_.size() * kWays) grow();
  Set& set = sets_[set_of(ghost.fingerprint)];
  const Ghost displaced = set.ghosts.back();
  set.remember(ghost);
  return displaced.is_set() ? std::optional(displaced) : std::nullopt;
}

void Ghosts::grow() {
  // A set splits into two neighbours, so nothing is displaced and the order within sets stays.
  std::vector<Set> old(sets_.size() * 2);
  old.swap(sets_);
  for (const Set& set : old)
    for (size_t i = kWays; i-- > 0;)
      if (const Ghost& ghost = set.ghosts[i]; ghost.is_set())
        sets_[set_of(ghost.fingerprint)].remember(ghost);
}

}  // namespace berth::policy
