// Sizes and durations as people write them, and back. Used by config files, command lines and
// views, so that every place accepts exactly the same forms and refuses everything else with the
// same words.
//
// Sizes: a whole number with an optional binary unit and nothing else: "4096", "64KiB", "2GiB"
// (KiB MiB GiB TiB; upper- and lower-case as written here). No fractions, signs, spaces, decimal
// units. Durations: a whole number with a unit: "250ms", "10s", "5min", "2h".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/time.h"

namespace berth {

// `name` is the key or option, quoted in the error. Errors: kInvalidConfig.
Result<uint64_t> parse_size(std::string_view name, std::string_view text);
Result<Duration> parse_duration(std::string_view name, std::string_view text);

// "2GiB" when exact in that unit, else one decimal: "1.5GiB"; below 1 KiB "512B". For people only.
std::string format_size(uint64_t bytes);
// The exact form that parse_size accepts back, in the largest unit that divides it.
std::string exact_size(uint64_t bytes);
std::string format_duration(Duration duration);

// So many thousandths of `bytes`, rounded down; exact for any size.
constexpr uint64_t share_of(uint64_t bytes, uint32_t permille) {
  return bytes / 1000 * permille + bytes % 1000 * permille / 1000;
}

}  // namespace berth
