#include "common/zeroed_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>

namespace berth {
namespace {

using Pages = ZeroedMemory::Pages;

TEST_CASE("memory for tables is zero from end to end and can be written", "[memory]") {
  const Pages pages = GENERATE(Pages::kPlain, Pages::kHuge);
  constexpr size_t kSize = 3 * ZeroedMemory::kHugePage;
  const ZeroedMemory memory(kSize, pages);
  auto* const bytes = static_cast<unsigned char*>(memory.data());
  CHECK(std::all_of(bytes, bytes + kSize, [](unsigned char byte) { return byte == 0; }));
  std::fill(bytes, bytes + kSize, static_cast<unsigned char>(0xAB));
  CHECK(bytes[kSize - 1] == 0xAB);
}

TEST_CASE("memory that asks for huge pages begins where one can", "[memory]") {
  for (int i = 0; i < 8; ++i) {
    const ZeroedMemory memory(ZeroedMemory::kHugePage, Pages::kHuge);
    CHECK(reinterpret_cast<uintptr_t>(memory.data()) % ZeroedMemory::kHugePage == 0);
  }
}

TEST_CASE("memory for tables stays where it is when its owner moves", "[memory]") {
  ZeroedMemory first(ZeroedMemory::kHugePage, Pages::kPlain);
  void* const at = first.data();
  ZeroedMemory second = std::move(first);
  CHECK(second.data() == at);
  ZeroedMemory third(ZeroedMemory::kHugePage, Pages::kPlain);
  third = std::move(second);
  CHECK(third.data() == at);
  static_cast<char*>(third.data())[0] = 1;
}

}  // namespace
}  // namespace berth
