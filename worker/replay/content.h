// What a block's digest is, and what its bytes are. The digest of block i names the whole prefix
// through i; the bytes are a pure function of digest, shard and part. So whoever knows the chain
// can check every byte of a block, and a block that was mixed up with any other one is found at its
// first word.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace berth::replay {

inline constexpr size_t kDigestBytes = 32;
using Digest = std::array<std::byte, kDigestBytes>;

// digest_i = xxh3-128 with two seeds over (digest_{i-1}, hash_ids_i).
std::vector<Digest> digest_chain(std::span<const uint64_t> hash_ids);

// One shard's part of a block.
struct BlockIdentity {
  Digest digest{};
  uint32_t shard = 0;
  uint32_t part = 0;
};

void write_content(const BlockIdentity& block, std::span<std::byte> bytes);

// Compares every byte. The offset of the first wrong word, or none.
std::optional<size_t> find_wrong_byte(const BlockIdentity& block, std::span<const std::byte> bytes);

// One step of splitmix64: a well mixed word out of a counter that moves by kMixStep.
inline constexpr uint64_t kMixStep = 0x9E3779B97F4A7C15;
constexpr uint64_t mix64(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

}  // namespace berth::replay
