// Which engine gets which request, decided before the replay so that it does not depend on how fast
// engines are. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "worker/replay/trace.h"

namespace berth::replay {

enum class Routing : uint8_t {
  kPrefix,  // to the engine that was given the longest prefix of it, when that is a tenth of its
            // blocks or more; else to the engine with the fewest blocks so far
  kRoundRobin,  // in turn, blind to what an engine has
};

// Errors: kInvalidArgument with the accepted words.
Result<Routing> parse_routing(std::string_view text);

// One element a request: the index of its engine.
std::vector<uint32_t> route(const std::vector<Request>& requests, uint32_t engine_count,
                            Routing routing);

}  // namespace berth::replay
