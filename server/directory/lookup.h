// What a chunk is to a reader: the one judgement that Probe (over what is installed) and Acquire
// (over a draft) share, so that they cannot differ.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "server/directory/access.h"
#include "server/directory/mutation.h"
#include "server/directory/records.h"
#include "server/directory/replica_table.h"

namespace berth {

// What stands in the way of reading one replica; kNone: readable.
// `owner`: of the pool; null while nothing is known of it.
MissReason obstacle(const Replica& replica, const Namespace& ns, const Pool& pool,
                    const Presence* owner, const Reader& reader);

// The worst obstacle is the least informative one; of several copies the best is told.
inline bool is_better(MissReason a, MissReason b) {
  const auto rank = [](MissReason r) {
    switch (r) {
      case MissReason::kNone:
        return 0;
      case MissReason::kBeingWritten:
        return 1;
      case MissReason::kUnverified:
        return 2;
      case MissReason::kOwnerSilent:
        return 3;
      case MissReason::kRetiring:
        return 4;
      case MissReason::kQuarantined:
        return 5;
      case MissReason::kNotAccessible:
        return 6;
      default:
        return 7;
    }
  };
  return rank(a) < rank(b);
}

struct ChunkView {
  ChunkClass chunk_class = ChunkClass::kMiss;
  MissReason miss = MissReason::kNone;
};

// Judges the chunks of one call in their order, for as long as its world does not change.
//
// World: `base_replicas()`, the installed table; `each_replica(key, first_slot, visit)`, which is
// told the key's first slot in that table; `find<Pool>(id)`, `find<Presence>(session)`.
//
// Keys are looked for a group ahead of the judgement, so that the lines of many come side by side;
// the first group is small, because a call often ends with its first chunk.
template <class World>
class ChunkLookup {
 public:
  ChunkLookup(const World& world, const Namespace& ns, std::span<const Digest> digests,
              const std::vector<Reader>& readers)
      : world_(world), ns_(ns), digests_(digests), readers_(readers) {}

  // The next chunk; at most as many calls as there are digests, the last of them the first that
  // answers a miss. On a hit, `replicas` gets one copy for each shard and part, in that order; on a
  // miss it is left as it was.
  ChunkView next(std::vector<const Replica*>* replicas);

 private:
  static constexpr size_t kFirstGroup = 4;
  static constexpr size_t kGroup = 32;
  static constexpr size_t kPools = 8;

  struct Copy {
    MissReason obstacle = MissReason::kNotPresent;
    const Replica* replica = nullptr;
    bool is_local = false;
  };
  struct PoolView {
    PoolId id;
    const Pool* pool = nullptr;
    const Presence* owner = nullptr;
  };

  Copy best_copy(const Reader& reader);
  const PoolView& pool_of(const Replica& replica);
  void look_ahead();

  const World& world_;
  const Namespace& ns_;
  const std::span<const Digest> digests_;
  const std::vector<Reader>& readers_;
  // The group: keys before `at_` are judged. Behind it, the key that comes next.
  std::array<ObjectKey, kGroup> keys_;
  std::array<uint32_t, kGroup> slots_;
  size_t at_ = 0;
  size_t end_ = 0;
  size_t digest_ = 0;
  uint32_t shard_ = 0;
  uint32_t part_ = 0;
  // What was found out about pools: neighbours mostly lie in the same ones.
  std::array<PoolView, kPools> pools_{};
};

template <class World>
ChunkView ChunkLookup<World>::next(std::vector<const Replica*>* replicas) {
  const size_t before = replicas ? replicas->size() : 0;
  ChunkView view{ChunkClass::kL1Local, MissReason::kNone};
  bool some_present = false;
  for (uint32_t shard = 0; shard < ns_.spec.shards; ++shard) {
    const Reader& reader = readers_[readers_.size() == 1 ? 0 : shard];
    for (uint32_t part = 0; part < ns_.spec.parts; ++part) {
      const Copy copy = best_copy(reader);
      some_present |= copy.obstacle != MissReason::kNotPresent;
      if (copy.obstacle != MissReason::kNone) {
        if (replicas) replicas->resize(before);
        const bool incomplete =
            copy.obstacle == MissReason::kNotPresent && (some_present || shard + part > 0);
        return {ChunkClass::kMiss, incomplete ? MissReason::kIncomplete : copy.obstacle};
      }
      if (!copy.is_local) view.chunk_class = ChunkClass::kL1Shared;
      if (replicas) replicas->push_back(copy.replica);
    }
  }
  return view;
}

// Of the next key.
template <class World>
typename ChunkLookup<World>::Copy ChunkLookup<World>::best_copy(const Reader& reader) {
  if (at_ == end_) look_ahead();
  Copy best;
  world_.each_replica(keys_[at_], slots_[at_], [&](const Replica& replica) {
    const PoolView& view = pool_of(replica);
    const MissReason why = obstacle(replica, ns_, *view.pool, view.owner, reader);
    const bool is_local = view.pool->owner == reader.worker;
    if (is_better(why, best.obstacle) || (why == MissReason::kNone && is_local && !best.is_local))
      best = {why, &replica, is_local};
    return !(best.obstacle == MissReason::kNone && best.is_local);
  });
  ++at_;
  return best;
}

template <class World>
const typename ChunkLookup<World>::PoolView& ChunkLookup<World>::pool_of(const Replica& replica) {
  PoolView& view = pools_[replica.pool.value() % kPools];
  if (view.id != replica.pool) {
    const Pool* pool = world_.template find<Pool>(replica.pool);
    view = {replica.pool, pool, world_.template find<Presence>(pool->owner)};
  }
  return view;
}

template <class World>
void ChunkLookup<World>::look_ahead() {
  const size_t most = end_ == 0 ? kFirstGroup : kGroup;
  const auto number = static_cast<uint32_t>(ns_.id.value());
  at_ = end_ = 0;
  while (end_ < most && digest_ < digests_.size()) {
    // In place and not by key_of(): a key that is put together and copied at once waits for itself.
    ObjectKey& key = keys_[end_++];
    key.digest = digests_[digest_];
    key.namespace_number = number;
    key.shard = static_cast<uint16_t>(shard_);
    key.part = static_cast<uint16_t>(part_);
    if (++part_ < ns_.spec.parts) continue;
    part_ = 0;
    if (++shard_ < ns_.spec.shards) continue;
    shard_ = 0;
    ++digest_;
  }
  world_.base_replicas().first_slots_of({keys_.data(), end_}, {slots_.data(), end_});
}

}  // namespace berth
