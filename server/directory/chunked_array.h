// An array that grows by chunks: no element ever moves, and growing never copies, so neither stalls
// nor holds a thing twice. A chunk is taken at once and paid for as it is touched; all but the
// first ask for huge pages.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "common/zeroed_memory.h"

namespace berth {

// Elements are T{}, which for a trivial T is all zero.
template <class T, unsigned kChunkBits>
class ChunkedArray {
  static_assert(std::is_trivially_destructible_v<T>);
  static constexpr size_t kChunk = size_t{1} << kChunkBits;
  static_assert(sizeof(T) * kChunk % ZeroedMemory::kHugePage == 0,
                "the end of a chunk would lie on plain pages");

 public:
  size_t size() const { return size_; }
  size_t memory_bytes() const { return size_ * sizeof(T); }

  T& operator[](size_t i) { return chunk_of(i)[i % kChunk]; }
  const T& operator[](size_t i) const { return chunk_of(i)[i % kChunk]; }

  T& append() {
    if (size_ % kChunk == 0)
      chunks_.emplace_back(sizeof(T) * kChunk, chunks_.empty() ? ZeroedMemory::Pages::kPlain
                                                               : ZeroedMemory::Pages::kHuge);
    T& fresh = (*this)[size_++];
    if constexpr (!std::is_trivially_default_constructible_v<T>) std::construct_at(&fresh);
    return fresh;
  }

 private:
  T* chunk_of(size_t i) const { return static_cast<T*>(chunks_[i / kChunk].data()); }

  std::vector<ZeroedMemory> chunks_;
  size_t size_ = 0;
};

}  // namespace berth
