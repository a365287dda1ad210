// Why a chunk is a hit or a miss for a requester, copy by copy. A pure function of what is
// installed, by the same judgement as Probe (lookup.h), put into sentences for an operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/directory/access.h"
#include "server/directory/directory.h"

namespace berth {

// Copies of one chunk that are told of; a chunk has at most one for each shard, part and pool.
inline constexpr size_t kExplainedCopiesMax = 10'000;

struct ExplainedCopy {
  uint32_t slot = 0;  // in the table of replicas
  MissReason obstacle = MissReason::kNone;
  std::string advice;  // what stands in the way, as a sentence; empty: nothing
};

struct Explanation {
  bool is_hit = false;
  MissReason miss = MissReason::kNone;  // what Probe answers for the chunk alone
  std::vector<ExplainedCopy> copies;    // by shard and part
};

// `reader`: who would read every shard of it.
Explanation explain(const Directory& directory, const Namespace& ns, const Digest& digest,
                    const Reader& reader);

}  // namespace berth
