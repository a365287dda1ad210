#include "worker/replay/content.h"

#include <xxhash.h>

#include <cstring>

namespace berth::replay {
namespace {

constexpr uint64_t kDigestSeeds[] = {0x6265727468, 0x7265706c6179};

uint64_t seed_of(const BlockIdentity& block) {
  uint64_t words[kDigestBytes / sizeof(uint64_t)];
  std::memcpy(words, block.digest.data(), kDigestBytes);
  uint64_t seed = uint64_t{block.shard} << 32 | block.part;
  for (const uint64_t word : words) seed = mix64(seed + kMixStep) ^ word;
  return seed;
}

}  // namespace

std::vector<Digest> digest_chain(std::span<const uint64_t> hash_ids) {
  std::vector<Digest> chain;
  chain.reserve(hash_ids.size());
  struct {
    Digest previous{};
    uint64_t hash_id = 0;
  } input;
  for (const uint64_t hash_id : hash_ids) {
    input.hash_id = hash_id;
    Digest digest;
    size_t offset = 0;
    for (const uint64_t seed : kDigestSeeds) {
      XXH128_canonical_t canonical;
      XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(&input, sizeof input, seed));
      std::memcpy(digest.data() + offset, canonical.digest, sizeof canonical.digest);
      offset += sizeof canonical.digest;
    }
    chain.push_back(digest);
    input.previous = digest;
  }
  return chain;
}

void write_content(const BlockIdentity& block, std::span<std::byte> bytes) {
  uint64_t state = seed_of(block);
  size_t offset = 0;
  for (; offset + sizeof(uint64_t) <= bytes.size(); offset += sizeof(uint64_t)) {
    const uint64_t word = mix64(state += kMixStep);
    std::memcpy(bytes.data() + offset, &word, sizeof word);
  }
  const uint64_t word = mix64(state + kMixStep);
  if (offset < bytes.size()) std::memcpy(bytes.data() + offset, &word, bytes.size() - offset);
}

std::optional<size_t> find_wrong_byte(const BlockIdentity& block,
                                      std::span<const std::byte> bytes) {
  uint64_t state = seed_of(block);
  size_t offset = 0;
  for (; offset + sizeof(uint64_t) <= bytes.size(); offset += sizeof(uint64_t)) {
    const uint64_t expected = mix64(state += kMixStep);
    uint64_t found;
    std::memcpy(&found, bytes.data() + offset, sizeof found);
    if (found != expected) return offset;
  }
  const uint64_t expected = mix64(state + kMixStep);
  if (std::memcmp(bytes.data() + offset, &expected, bytes.size() - offset) != 0) return offset;
  return std::nullopt;
}

}  // namespace berth::replay
