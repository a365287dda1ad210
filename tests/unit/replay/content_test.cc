// Digest chains and block content.
#include "worker/replay/content.h"

#include <catch2/catch.hpp>
#include <set>

namespace berth::replay {
namespace {

std::vector<Digest> chain_of(std::vector<uint64_t> ids) { return digest_chain(ids); }

TEST_CASE("a digest names the whole prefix and not the last block", "[replay][content]") {
  const auto one = chain_of({1, 2, 3});
  const auto other = chain_of({9, 2, 3});
  CHECK(one[0] == chain_of({1})[0]);
  CHECK(one[1] == chain_of({1, 2, 77})[1]);
  CHECK(one[1] != other[1]);
  CHECK(one[2] != other[2]);
  CHECK(std::set<Digest>{one[0], one[1], one[2]}.size() == 3);
}

TEST_CASE("content is the same for the same block and other for any other", "[replay][content]") {
  const Digest digest = chain_of({5})[0];
  std::vector<std::byte> bytes(4099);
  write_content({digest, 0, 0}, bytes);
  CHECK_FALSE(find_wrong_byte({digest, 0, 0}, bytes));
  CHECK(find_wrong_byte({digest, 1, 0}, bytes) == 0U);
  CHECK(find_wrong_byte({digest, 0, 1}, bytes) == 0U);
  CHECK(find_wrong_byte({chain_of({6})[0], 0, 0}, bytes) == 0U);
}

TEST_CASE("every single flipped bit of a block is found at its word", "[replay][content]") {
  const BlockIdentity block{chain_of({5})[0], 0, 0};
  std::vector<std::byte> bytes(77);  // nine words and a tail of five bytes
  write_content(block, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto wrong = find_wrong_byte(block, bytes);
    REQUIRE(wrong);
    CHECK(*wrong == bit / 64 * 8);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  CHECK_FALSE(find_wrong_byte(block, bytes));
}

TEST_CASE("a block shorter than a word is checked too", "[replay][content]") {
  const BlockIdentity block{chain_of({5})[0], 0, 0};
  std::vector<std::byte> bytes(3);
  write_content(block, bytes);
  CHECK_FALSE(find_wrong_byte(block, bytes));
  bytes[2] ^= std::byte{1};
  CHECK(find_wrong_byte(block, bytes) == 0U);
}

}  // namespace
}  // namespace berth::replay
