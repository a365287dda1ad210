// The objects that simulated engines store and load. What a key holds follows from the key, so a
// wrong page is recognised wherever it turns up.
#pragma once

#include <array>
#include <string>

#include "berth/v1/types.pb.h"
#include "tests/sim/random.h"

namespace berth::sim {

inline constexpr uint64_t kPageBytes = 4096;
inline constexpr size_t kNamespaceCount = 2;
inline constexpr std::array<uint32_t, kNamespaceCount> kShards{1, 2};
inline constexpr std::array<uint32_t, kNamespaceCount> kDigestBytes{16, 20};

inline v1::NamespaceSpec namespace_spec(size_t index) {
  v1::NamespaceSpec spec;
  spec.set_name("namespace-" + std::to_string(index));
  spec.set_application("simulation");
  spec.set_model("weights@1");
  spec.set_tokenizer("tokenizer@1");
  spec.set_dtype("bf16");
  spec.set_layers(4);
  spec.set_kv_heads(2);
  spec.set_head_dim(64);
  spec.set_storage_format("plain");
  spec.set_storage_version(1);
  spec.set_chunk_tokens(16);
  spec.set_shards(kShards[index]);
  spec.set_parts(1);
  spec.set_digest_bytes(kDigestBytes[index]);
  return spec;
}

struct Chunk {
  size_t name_space = 0;
  uint64_t number = 0;

  std::string digest() const {
    std::string bytes;
    for (uint64_t i = 0; bytes.size() < kDigestBytes[name_space]; ++i) {
      const uint64_t word = mix(number * 4 + name_space, i);
      for (int shift = 0; shift < 64 && bytes.size() < kDigestBytes[name_space]; shift += 8)
        bytes.push_back(static_cast<char>(word >> shift));
    }
    return bytes;
  }
  uint64_t object_hash(uint32_t shard) const { return mix(mix(number, name_space), shard + 7); }
  uint64_t page_count(uint32_t shard) const { return 1 + object_hash(shard) % 3; }
  uint64_t size_bytes(uint32_t shard) const {
    return page_count(shard) * kPageBytes - object_hash(shard) % 2 * 100;
  }
};

}  // namespace berth::sim
