// What a chunk is to a reader: the one judgement that Probe (over what is installed) and Acquire
// (over a draft) share, so that they cannot differ.
#pragma once

#include <vector>

#include "server/directory/access.h"
#include "server/directory/records.h"

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

// World: `each_replica(key, visit)`, `find<Pool>(id)`, `find<Presence>(session)`. On a hit,
// `replicas` gets one copy for each shard and part, in that order; on a miss it is left as it was.
template <class World>
ChunkView look_up(const World& world, const Namespace& ns, const Digest& digest,
                  const std::vector<Reader>& readers, std::vector<const Replica*>* replicas) {
  const size_t before = replicas ? replicas->size() : 0;
  ChunkView view{ChunkClass::kL1Local, MissReason::kNone};
  bool some_present = false;
  for (uint32_t shard = 0; shard < ns.spec.shards; ++shard) {
    const Reader& reader = readers[readers.size() == 1 ? 0 : shard];
    for (uint32_t part = 0; part < ns.spec.parts; ++part) {
      MissReason best = MissReason::kNotPresent;
      const Replica* found = nullptr;
      bool is_local = false;
      world.each_replica(key_of(ns, digest, shard, part), [&](const Replica& replica) {
        const Pool* pool = world.template find<Pool>(replica.pool);
        const MissReason why =
            obstacle(replica, ns, *pool, world.template find<Presence>(pool->owner), reader);
        const bool local = pool->owner == reader.worker;
        if (is_better(why, best) || (why == MissReason::kNone && local && !is_local)) {
          best = why;
          found = &replica;
          is_local = local;
        }
        return !(best == MissReason::kNone && is_local);
      });
      some_present |= best != MissReason::kNotPresent;
      if (best != MissReason::kNone) {
        if (replicas) replicas->resize(before);
        const bool incomplete =
            best == MissReason::kNotPresent && (some_present || shard + part > 0);
        return {ChunkClass::kMiss, incomplete ? MissReason::kIncomplete : best};
      }
      if (!is_local) view.chunk_class = ChunkClass::kL1Shared;
      if (replicas) replicas->push_back(found);
    }
  }
  return view;
}

}  // namespace berth
