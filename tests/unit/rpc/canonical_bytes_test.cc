#include "server/rpc/canonical_bytes.h"

#include <catch2/catch.hpp>

namespace berth::testing {

TEST_CASE("the hash of columns, texts and numbers never changes, because it is stored",
          "[rpc][translate]") {
  google::protobuf::RepeatedField<uint64_t> wide;
  google::protobuf::RepeatedField<uint32_t> narrow;
  for (uint64_t i = 0; i < 300; ++i) wide.Add(i * 0x0123456789ABCDEF);
  for (uint32_t i = 0; i < 40; ++i) narrow.Add(i * 0x01234567);
  rpc::CanonicalBytes bytes("numbers");
  bytes.add(wide).add(narrow).add("text").add(uint64_t{7});
  CHECK(bytes.hash64() == 0x73c660e3e9e3bed0);
  CHECK(bytes.hash128() == Id128{0xe334b152f79a5663, 0x73c660e3e9e3bed0});
}

}  // namespace berth::testing
