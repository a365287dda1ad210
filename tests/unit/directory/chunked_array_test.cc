#include "server/directory/chunked_array.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

namespace berth {
namespace {

struct Element {
  uint64_t number = 7;
  uint64_t unused = 0;
};

TEST_CASE("an array of chunks grows without moving what it holds", "[directory][index]") {
  ChunkedArray<Element, 17> array;
  std::vector<Element*> places;
  constexpr size_t kCount = (size_t{3} << 17) + 5;
  for (size_t i = 0; i < kCount; ++i) {
    Element& fresh = array.append();
    REQUIRE(fresh.number == 7);
    fresh.number = i;
    places.push_back(&fresh);
  }
  CHECK(array.size() == kCount);
  CHECK(array.memory_bytes() == kCount * sizeof(Element));
  for (size_t i = 0; i < kCount; ++i) {
    REQUIRE(&array[i] == places[i]);
    REQUIRE(array[i].number == i);
  }
}

TEST_CASE("elements of a plain type start as zero", "[directory][index]") {
  ChunkedArray<uint64_t, 18> array;
  for (size_t i = 0; i < (size_t{2} << 18); ++i) REQUIRE(array.append() == 0);
}

}  // namespace
}  // namespace berth
