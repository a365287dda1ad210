// Copying a chunk into or out of a pool, past the caches: nobody reads a chunk's bytes soon after
// they were copied, and a plain copy reads every line of the target before it overwrites it, so
// that a third of the memory's bandwidth carries what nobody wants. From kStreamedBytesMin on the
// target is written with non-temporal stores, which finish before this returns; below it, and on
// other machines than x86-64, it is std::memcpy.
//
// Engines need not use it: the spans are plain memory.
#pragma once

#include <cstddef>
#include <span>

namespace berth::client {

// Smaller copies stay in the second-level cache of the core that makes them.
inline constexpr size_t kStreamedBytesMin = size_t{256} << 10;

// `to` and `from` are of the same size (CHECK) and do not overlap.
void copy_chunk(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace berth::client
