#include "worker/client/copy_chunk.h"

#include <cstdint>
#include <cstring>

#include "common/check.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace berth::client {
namespace {

#if defined(__x86_64__)

constexpr size_t kLine = 64;
// Two lines a step, and so far ahead that they are there when their step comes.
constexpr size_t kStep = 2 * kLine;
constexpr size_t kAhead = 16 * kLine;

// Whole steps, to where a line begins. Registers that are wider than those of every x86-64 would
// not help: it waits for memory. What is prefetched behind the end is never read.
void stream_steps(std::byte* to, const std::byte* from, size_t bytes) {
  constexpr size_t kWords = kStep / sizeof(__m128i);
  for (size_t at = 0; at < bytes; at += kStep) {
    const auto* ahead = reinterpret_cast<const char*>(from + at + kAhead);
    _mm_prefetch(ahead, _MM_HINT_NTA);
    _mm_prefetch(ahead + kLine, _MM_HINT_NTA);
    const auto* source = reinterpret_cast<const __m128i*>(from + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    // Unrolled, or the words go through the stack.
    __m128i words[kWords];
#pragma GCC unroll 8
    for (size_t i = 0; i < kWords; ++i) words[i] = _mm_loadu_si128(source + i);
#pragma GCC unroll 8
    for (size_t i = 0; i < kWords; ++i) _mm_stream_si128(target + i, words[i]);
  }
}

void stream(std::byte* to, const std::byte* from, size_t bytes) {
  const size_t before = -reinterpret_cast<uintptr_t>(to) % kLine;
  std::memcpy(to, from, before);
  const size_t streamed = (bytes - before) / kStep * kStep;
  stream_steps(to + before, from + before, streamed);
  const size_t done = before + streamed;
  std::memcpy(to + done, from + done, bytes - done);
  // Streamed stores are not in the order of others: who is told of the bytes must find them.
  _mm_sfence();
}

#else

void stream(std::byte* to, const std::byte* from, size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace

void copy_chunk(std::span<std::byte> to, std::span<const std::byte> from) {
  BERTH_CHECK(to.size() == from.size(), "a chunk is copied whole");
  if (to.size() >= kStreamedBytesMin)
    stream(to.data(), from.data(), to.size());
  else if (!to.empty())
    std::memcpy(to.data(), from.data(), to.size());
}

}  // namespace berth::client
