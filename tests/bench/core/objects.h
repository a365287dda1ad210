// Which objects there are: object n of a space has a digest that is a function of both, so that any
// part of the bench can name it without a list. The space of a member's objects is the member's
// own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/directory/records.h"

namespace berth::bench {

inline constexpr uint64_t kDigestBytes = 32;  // as the chains of traces have
inline constexpr uint64_t kPageBytes = 4096;  // of every pool; one object is one page

// Appends the digests of `count` objects from `first` on.
void append_digests(std::string& digests, uint64_t space, uint64_t first, uint64_t count);
std::vector<Digest> digests_of(uint64_t space, uint64_t first, uint64_t count);

}  // namespace berth::bench
