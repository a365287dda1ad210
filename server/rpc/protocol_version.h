// Which protocol version a connection speaks. A berthd serves its own version and the one before;
// both sides offer the range that they speak, and the newest version in both is in force.
#pragma once

#include <cstdint>

#include "common/error.h"

namespace berth::rpc {

struct ProtocolRange {
  uint32_t newest = 0;
  uint32_t oldest = 0;
};
// Version 1 is the first, so there is none before it yet. Version 2 will raise `newest` alone.
inline constexpr ProtocolRange kProtocolSpoken{1, 1};

// Errors: invalid_argument (not a range), unsupported_version, which names both ranges and the side
// to upgrade.
Result<uint32_t> negotiate(ProtocolRange theirs, ProtocolRange ours);

}  // namespace berth::rpc
