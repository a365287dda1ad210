// Operators name chunks, not replicas: a namespace and digests. A chunk is every shard and part of
// it, and each of these may have several copies.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "server/directory/context.h"

namespace berth {

// Copies that one command may look for: shards and parts multiply what the batch bound counts.
inline constexpr uint64_t kCopiesLookedForMax = 65'536;

inline uint64_t chunks_max(const Namespace& ns, const DirectoryConfig& config) {
  const uint64_t per_chunk = uint64_t{ns.spec.shards} * ns.spec.parts;
  return std::min<uint64_t>(config.batch_items_max,
                            std::max<uint64_t>(1, kCopiesLookedForMax / per_chunk));
}

// The namespace, for `count` of its chunks. Errors: unknown_namespace, invalid_argument.
inline Result<const Namespace*> chunks_of(const Context& c, const std::string& name, size_t count) {
  const Namespace* ns = c.draft.namespace_by_name(name);
  if (!ns) return refuse(Reason::kUnknownNamespace, "no namespace \"" + name + "\"");
  const uint64_t most = chunks_max(*ns, c.config);
  if (count == 0 || count > most)
    return refuse(Reason::kInvalidArgument, "digests holds " + std::to_string(count) +
                                                " chunks; accepted: 1 to " + std::to_string(most));
  return ns;
}

inline std::vector<ReplicaId> copies_of(const Context& c, const Namespace& ns,
                                        const Digest& digest) {
  std::vector<ReplicaId> found;
  for (uint32_t shard = 0; shard < ns.spec.shards; ++shard)
    for (uint32_t part = 0; part < ns.spec.parts; ++part)
      c.draft.each_replica(key_of(ns, digest, shard, part), [&](const Replica& replica) {
        found.push_back(replica.id);
        return true;
      });
  return found;
}

}  // namespace berth
