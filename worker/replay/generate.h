// Traces for where no recorded one is at hand. The same kind, seed and length give the same trace
// everywhere.
//
//   chat    many conversations under a few system prompts; each turn repeats the whole conversation
//   so far rag     a prompt, two to four documents out of a library where some are far more
//   popular, a question agents  a long tool description, then many short steps; now and then an
//   agent branches off an earlier step
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/replay/trace.h"

namespace berth::replay {

enum class TraceKind : uint8_t { kChat, kRag, kAgents };

// Errors: kInvalidArgument with the accepted kinds.
Result<TraceKind> parse_trace_kind(std::string_view text);

std::vector<Request> generate_trace(TraceKind kind, uint64_t seed, size_t request_count);

}  // namespace berth::replay
