// What is installed, as answers: pure functions of a directory. Callers hold the view
// (server/sequencer/view.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"
#include "server/directory/access.h"
#include "server/directory/commands.h"
#include "server/directory/directory.h"

namespace berth {

// One reader per shard of a namespace. Errors: unknown_session; invalid_argument (a shard out of
// range).
Result<std::vector<Reader>> readers_for(const Directory& directory, const Namespace& ns,
                                        SessionId client, std::span<const Target> targets);

struct ProbeAnswer {
  std::vector<uint8_t> classes;  // ChunkClass of each usable chunk
  MissReason miss = MissReason::kNone;
};
ProbeAnswer probe(const Directory& directory, const Namespace& ns, std::span<const Digest> digests,
                  const std::vector<Reader>& readers);

// What became of an operation. Committed: the stored answer. Refused: at or below the low-water
// mark, its answer is no longer kept. Unknown: nothing was recorded, which is not an abort within
// one epoch.
struct Resolved {
  enum class Outcome : uint8_t { kCommitted = 1, kRefused = 2, kUnknown = 3 };
  Outcome outcome = Outcome::kUnknown;
  OperationKind kind = OperationKind::kReserve;
  Reserved reserved;
  Committed committed;
  Acquired acquired;
};
Resolved resolve(const Directory& directory, SessionId client, OperationNumber operation);

// The answer that was stored under an operation, as it was given, with what has changed since told
// per item.
Reserved reserved_answer(const Operation& operation);

}  // namespace berth
