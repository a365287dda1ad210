#include "worker/client/copy_chunk.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

namespace berth::client {
namespace {

constexpr std::byte kUntouched{0xEE};

std::vector<std::byte> bytes_that_differ(size_t count) {
  std::vector<std::byte> bytes(count);
  uint64_t word = 1;
  for (std::byte& byte : bytes) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(word >> 56);
  }
  return bytes;
}

// Whether exactly these bytes arrive, from and to places that lie so far behind a cache line.
bool arrives(size_t count, size_t from_shift, size_t to_shift) {
  constexpr size_t kLine = 64;
  const std::vector<std::byte> source = bytes_that_differ(count + kLine);
  std::vector<std::byte> target(count + 4 * kLine, kUntouched);
  const size_t line = kLine - reinterpret_cast<uintptr_t>(target.data()) % kLine + kLine;
  const auto begin = target.begin() + static_cast<ptrdiff_t>(line + to_shift);
  const std::span<const std::byte> from = std::span(source).subspan(from_shift, count);
  copy_chunk(std::span(begin, count), from);
  const auto end = begin + static_cast<ptrdiff_t>(count);
  const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
  return std::equal(from.begin(), from.end(), begin, end) &&
         std::all_of(target.begin(), begin, is_untouched) &&
         std::all_of(end, target.end(), is_untouched);
}

TEST_CASE("a copied chunk arrives whole, and nothing beside it is touched") {
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{4096}, kStreamedBytesMin - 1, kStreamedBytesMin,
        kStreamedBytesMin + 1, kStreamedBytesMin + 127, (size_t{1} << 20) + 63})
    for (const size_t from_shift : {size_t{0}, size_t{1}, size_t{33}})
      for (const size_t to_shift : {size_t{0}, size_t{1}, size_t{31}, size_t{63}}) {
        INFO(count << " bytes, shifted by " << from_shift << " and " << to_shift);
        CHECK(arrives(count, from_shift, to_shift));
      }
}

}  // namespace
}  // namespace berth::client
