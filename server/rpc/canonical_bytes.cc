#include "server/rpc/canonical_bytes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace berth::rpc {

CanonicalBytes& CanonicalBytes::add(uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(number >> shift));
  return *this;
}

CanonicalBytes& CanonicalBytes::add(std::string_view text) {
  add(uint64_t{text.size()});
  bytes_.append(text);
  return *this;
}

CanonicalBytes& CanonicalBytes::add(const google::protobuf::RepeatedField<uint64_t>& numbers) {
  add(static_cast<uint64_t>(numbers.size()));
  for (const uint64_t number : numbers) add(number);
  return *this;
}

CanonicalBytes& CanonicalBytes::add(const google::protobuf::RepeatedField<uint32_t>& numbers) {
  add(static_cast<uint64_t>(numbers.size()));
  for (const uint32_t number : numbers) add(uint64_t{number});
  return *this;
}

uint64_t CanonicalBytes::hash64() const { return XXH3_64bits(bytes_.data(), bytes_.size()); }

Id128 CanonicalBytes::hash128() const {
  const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
  return {hash.high64, hash.low64};
}

}  // namespace berth::rpc
