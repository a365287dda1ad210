#include "tests/bench/core/objects.h"

#include <cstring>

#include "tests/bench/core/chance.h"

namespace berth::bench {

void append_digests(std::string& digests, uint64_t space, uint64_t first, uint64_t count) {
  size_t at = digests.size();
  digests.resize(at + count * kDigestBytes);
  for (uint64_t object = first; object < first + count; ++object) {
    uint64_t state = (space << 48) ^ object;
    for (uint64_t i = 0; i < kDigestBytes; i += 8, at += 8) {
      const uint64_t word = next_random(state);
      std::memcpy(digests.data() + at, &word, 8);
    }
  }
}

std::vector<Digest> digests_of(uint64_t space, uint64_t first, uint64_t count) {
  std::string bytes;
  append_digests(bytes, space, first, count);
  std::vector<Digest> digests(count);
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(digests[i].bytes.data(), bytes.data() + i * kDigestBytes, kDigestBytes);
  return digests;
}

}  // namespace berth::bench
