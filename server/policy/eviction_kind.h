// The names of the eviction policies, apart from the policies themselves because records name them
// too. The numbers are on disk: never renumber.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "common/error.h"

namespace berth::policy {

enum class EvictionKind : uint8_t { kLru = 1, kS3Fifo = 2, kLfuDa = 3, kAdaptive = 4 };
inline constexpr std::array kEvictionKinds{EvictionKind::kLru, EvictionKind::kS3Fifo,
                                           EvictionKind::kLfuDa, EvictionKind::kAdaptive};

std::string_view name_of(EvictionKind kind);
// Errors: invalid_argument with the accepted names.
Result<EvictionKind> parse_eviction_kind(std::string_view text);

}  // namespace berth::policy
