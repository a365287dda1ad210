// Host memory that a GPU driver was asked to pin, in chunks. One huge registration fails in the
// driver whatever memory is free (its page table for one call hits a kernel allocation limit),
// several smaller ones work. A range is registered whole or not at all: a chunk that fails rolls
// the earlier ones back.
//
//   range of 40 GiB:  [ chunk 16 ][ chunk 16 ][ chunk 8 ]
//   a copy over a chunk's end is refused by the driver, so copies are cut there: pieces_of()
//
// Errors of the runtime stay latched for the thread and would make the next unrelated call fail;
// every failing call here clears the latch before it returns. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/error.h"

namespace berth::device {

// The driver's calls, apart from it, so that their failures can be tried without a GPU.
class HostRegisterCalls {
 public:
  virtual ~HostRegisterCalls() = default;
  // 0 for success, else a code for describe().
  virtual int register_chunk(std::span<std::byte> chunk) = 0;
  virtual int unregister_chunk(std::byte* start) = 0;
  virtual void clear_latched_error() = 0;
  virtual std::string describe(int code) const = 0;
};

class HostRegistrations {
 public:
  // A 32nd of the size at which drivers were seen to refuse.
  static constexpr size_t kChunkBytes = size_t{16} << 30;
  // Pools of one worker and the engines' own buffers; far above both.
  static constexpr size_t kRangeCountMax = 1024;

  explicit HostRegistrations(HostRegisterCalls& calls, size_t chunk_bytes = kChunkBytes);
  ~HostRegistrations();  // unregisters what is left; failures have nobody to hear them
  HostRegistrations(const HostRegistrations&) = delete;
  HostRegistrations& operator=(const HostRegistrations&) = delete;

  Result<> add(std::span<std::byte> memory);
  // Takes exactly a range that was added. After an Error the chunks that could not be unregistered
  // still count as registered, and the same call tries them again.
  Result<> remove(std::span<std::byte> memory);

  // What the driver holds now, also after a failed remove().
  uint64_t registered_bytes() const { return registered_bytes_; }
  // `memory` cut where a chunk begins or ends; memory that was never registered stays whole.
  std::vector<std::span<const std::byte>> pieces_of(std::span<const std::byte> memory) const;

 private:
  struct Range {
    size_t size = 0;
    std::map<std::byte*, size_t> chunks;  // those that the driver holds
  };

  bool overlaps(std::span<std::byte> memory) const;
  size_t unregister_chunks(Range& range, int& first_code);

  HostRegisterCalls& calls_;
  const size_t chunk_bytes_;
  std::map<std::byte*, Range> ranges_;
  uint64_t registered_bytes_ = 0;
};

}  // namespace berth::device
