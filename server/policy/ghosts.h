// What is remembered of evicted keys: eight bytes each, as many as there are resident objects (and
// never fewer than kEntriesMin, so that a small pool learns too). Sets of eight entries, one cache
// line; within a set the oldest gives way. A fingerprint that two keys share makes a new key look
// like an old one, which costs a little precision and nothing else.
//
//   fingerprint ─▶ set [newest] [     ] ... [oldest] ─▶ displaced
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace berth::policy {

struct Ghost {
  static constexpr uint32_t kStampBits = 24;
  static constexpr uint32_t kStampMask = (1u << kStampBits) - 1;

  uint32_t fingerprint = 0;
  uint32_t stamp_and_code = 0;  // 0: no entry

  // `code` is the policy's, and not 0. Of the stamp the low 24 bits are kept.
  static Ghost of(uint32_t fingerprint, uint64_t stamp, uint8_t code) {
    return {fingerprint, static_cast<uint32_t>((stamp & kStampMask) << 8) | code};
  }
  bool is_set() const { return stamp_and_code != 0; }
  uint8_t code() const { return static_cast<uint8_t>(stamp_and_code); }
  // The latest stamp not after `now` that has these low bits.
  uint64_t stamp(uint64_t now) const {
    return now - ((now - (stamp_and_code >> 8)) & uint64_t{kStampMask});
  }
};
static_assert(sizeof(Ghost) == 8);

class Ghosts {
 public:
  static constexpr size_t kEntriesMin = 32'768;
  static constexpr size_t kWays = 8;

  Ghosts() : sets_(kEntriesMin / kWays) {}

  // Brings the set of this key, which is asked for soon.
  void prefetch(uint32_t fingerprint) const { __builtin_prefetch(&sets_[set_of(fingerprint)]); }
  // The ghost of this key, which is thereby forgotten.
  std::optional<Ghost> take(uint32_t fingerprint);
  // Remembers a key; answers the one that gave way for it, if any. `resident` is how many objects
  // the policy holds: the table grows (doubles) until it has as many entries.
  std::optional<Ghost> put(const Ghost& ghost, size_t resident);

  size_t memory_bytes() const { return sets_.capacity() * sizeof(Set); }

 private:
  struct alignas(64) Set {
    std::array<Ghost, kWays> ghosts;  // newest first

    void remember(const Ghost& ghost) {
      std::move_backward(ghosts.begin(), ghosts.end() - 1, ghosts.end());
      ghosts.front() = ghost;
    }
  };

  size_t set_of(uint32_t fingerprint) const {
    // The multiplication spreads fingerprints that differ in few bits; sets are a power of two.
    const uint32_t mixed = fingerprint * 0x9E3779B1u;
    return (uint64_t{mixed} * sets_.size()) >> 32;
  }
  void grow();

  std::vector<Set> sets_;
};

}  // namespace berth::policy
