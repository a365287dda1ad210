// Shares as an operator types them: percent with at most one decimal. Pure; what cannot be read is
// a usage failure that quotes the option.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/ctl/failure.h"

namespace berth::ctl {

// "90", "90%" or "92.5" as 900 or 925 per mille, up to 1000. `name` is what the error quotes.
Answer<uint32_t> parse_permille(std::string_view name, std::string_view text);

}  // namespace berth::ctl
