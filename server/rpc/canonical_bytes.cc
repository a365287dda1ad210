#include "server/rpc/canonical_bytes.h"

#include <bit>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace berth::rpc {

// A number's bytes in memory are its bytes here, the least significant one first.
static_assert(std::endian::native == std::endian::little);

CanonicalBytes& CanonicalBytes::add(uint64_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  bytes_.append(bytes, sizeof number);
  return *this;
}

CanonicalBytes& CanonicalBytes::add(std::string_view text) {
  add(uint64_t{text.size()});
  bytes_.append(text);
  return *this;
}

CanonicalBytes& CanonicalBytes::add(const google::protobuf::RepeatedField<uint64_t>& numbers) {
  const auto count = static_cast<size_t>(numbers.size());
  add(uint64_t{count});
  bytes_.append(reinterpret_cast<const char*>(numbers.data()), count * sizeof(uint64_t));
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
