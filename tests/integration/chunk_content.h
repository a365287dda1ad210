// What the chunks of the tests hold: digest and bytes of chunk `index` of chain `seed` follow from
// the two numbers, so that a reader knows every byte without asking the writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace berth::testing {

inline constexpr size_t kDigestBytes = 16;

// splitmix64: neighbours have nothing in common.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr uint64_t chunk_id(uint64_t seed, uint64_t index) { return mix(mix(seed) + index); }

// The digests of `count` chunks, back to back.
inline std::vector<std::byte> chain_digests(uint64_t seed, uint64_t first, uint64_t count) {
  std::vector<std::byte> digests(count * kDigestBytes);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t id = chunk_id(seed, first + i);
    const uint64_t words[2] = {id, mix(id)};
    std::memcpy(digests.data() + i * kDigestBytes, words, sizeof words);
  }
  return digests;
}

constexpr std::byte chunk_byte(uint64_t id, size_t at) {
  return static_cast<std::byte>(mix(id + at / 8) >> (at % 8 * 8));
}

// Writes the bytes from `from` to `to` of the chunk that `memory` is for.
inline void write_chunk(std::span<std::byte> memory, uint64_t id, size_t from, size_t to) {
  for (size_t at = from; at < to; ++at) memory[at] = chunk_byte(id, at);
}

inline uint64_t count_wrong_bytes(std::span<const std::byte> memory, uint64_t id) {
  uint64_t wrong = 0;
  for (size_t at = 0; at < memory.size(); ++at) wrong += memory[at] != chunk_byte(id, at);
  return wrong;
}

}  // namespace berth::testing
