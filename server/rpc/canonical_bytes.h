// Values as bytes that name them and nothing else: every number is 8 bytes, every text carries its
// length, every list its count. So two different values never have the same bytes, and their hash
// can stand for them.
//
// The fingerprint of a namespace is on disk and in workers' ledgers: its layout never changes.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/ids.h"

namespace berth::rpc {

class CanonicalBytes {
 public:
  // `kind` says what is described, so that the bytes of different kinds differ too.
  explicit CanonicalBytes(std::string_view kind) {
    bytes_.reserve(kFirstBytes);
    add(kind);
  }

  CanonicalBytes& add(uint64_t number);
  CanonicalBytes& add(std::string_view text);
  CanonicalBytes& add(const google::protobuf::RepeatedField<uint64_t>& numbers);
  CanonicalBytes& add(const google::protobuf::RepeatedField<uint32_t>& numbers);

  // xxh3 of the bytes so far.
  uint64_t hash64() const;
  Id128 hash128() const;

 private:
  // A batch of a few hundred items without growing.
  static constexpr size_t kFirstBytes = 8192;
  std::string bytes_;
};

}  // namespace berth::rpc
