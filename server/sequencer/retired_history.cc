#include "server/sequencer/retired_history.h"

namespace berth {
namespace {

// A copy that somebody could read or could have read: not a write that came to nothing.
bool was_copy(const Replica& replica) {
  return replica.state == ReplicaState::kReady ||
         (replica.state == ReplicaState::kQuarantined && !replica.in_reservation);
}

}  // namespace

void RetiredHistory::before_install(const Directory& directory, std::span<const Mutation> mutations,
                                    Time now) {
  if (entries_max_ == 0) return;
  std::vector<RetiredCopy> left;
  for (const Mutation& mutation : mutations) {
    if (mutation.key.kind != RecordKind::kReplica) continue;
    const auto* after = std::get_if<Replica>(&mutation.value);
    if (after && after->state != ReplicaState::kRetiring) continue;
    const uint32_t slot = directory.slot_of(mutation);
    if (slot == ReplicaTable::kNone) continue;
    const Replica& before = directory.replicas().at(slot).replica;
    if (!was_copy(before)) continue;
    left.push_back({before.key, before.id, before.pool, after ? after->why : Why::kNone, now});
  }
  if (left.empty()) return;
  const std::lock_guard lock(mutex_);
  for (RetiredCopy& copy : left) {
    if (ring_.size() < entries_max_) {
      ring_.push_back(copy);
      continue;
    }
    ring_[next_] = copy;
    next_ = (next_ + 1) % entries_max_;
  }
}

std::vector<RetiredCopy> RetiredHistory::of_chunk(NamespaceId ns, const Digest& digest,
                                                  size_t count_max) const {
  std::vector<RetiredCopy> found;
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < ring_.size() && found.size() < count_max; ++i) {
    const RetiredCopy& copy = ring_[(next_ + ring_.size() - 1 - i) % ring_.size()];
    if (copy.key.namespace_id() == ns && copy.key.digest == digest) found.push_back(copy);
  }
  return found;
}

size_t RetiredHistory::size() const {
  const std::lock_guard lock(mutex_);
  return ring_.size();
}

size_t RetiredHistory::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return ring_.capacity() * sizeof(RetiredCopy);
}

}  // namespace berth
