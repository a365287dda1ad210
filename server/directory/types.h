// The words that the directory's records are written in: media, scopes, states, keys, item codes.
// Numeric values are on disk and on the wire (proto/berth/v1/types.proto has the same numbers):
// never renumber.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "common/ids.h"

namespace berth {

enum class Medium : uint8_t { kCpu = 1, kCxl = 2, kSsd = 3 };
enum class Tier : uint8_t { kL1 = 1, kL2 = 2 };
enum class Scope : uint8_t { kProcess = 1, kHost = 2, kDomain = 3 };
enum class Role : uint8_t { kWorker = 1, kClient = 2 };

enum class ReplicaState : uint8_t { kReserved = 1, kReady = 2, kRetiring = 3, kQuarantined = 4 };

// What is stored about a pool's life. Whether it is verified or silent follows from its owner's
// session.
enum class PoolState : uint8_t { kOpen = 1, kClosing = 4, kGone = 5, kDraining = 6 };

enum class StoreCode : uint8_t {
  kGranted = 1,
  kAlreadyPresent = 2,
  kBeingWritten = 3,
  kSkippedPoolFull = 4,
  kSkippedNoPool = 5,
  kSkippedNamespaceQuota = 6,
  kSkippedTooLarge = 7,
  kSkippedNoHole = 8,
  kSkippedDropped = 9,
  kSkippedUnavailable = 10,
  kSkippedCancelled = 11,
  kSkippedSessionLimit = 12,
};

enum class CommitCode : uint8_t { kCommitted = 1, kClosed = 2, kUnknown = 3 };

enum class ChunkClass : uint8_t {
  kMiss = 1,
  kL1Local = 2,
  kL1Shared = 3,
  kRestorable = 4,
  kPending = 5
};

enum class MissReason : uint8_t {
  kNone = 0,
  kNotPresent = 1,
  kIncomplete = 2,
  kBeingWritten = 3,
  kNotAccessible = 4,
  kOwnerSilent = 5,
  kUnverified = 6,
  kRetiring = 7,
  kQuarantined = 8,
  kStoreDegraded = 9,
};

// Why a replica retires or is quarantined. A bounded set: metric label and CLI column.
enum class Why : uint8_t {
  kNone = 0,
  kEvicted = 1,  // an operator named it
  kPoolClosing = 2,
  kWriterFenced = 3,    // its writer is proven dead
  kWriterAborted = 4,   // given up by its writer, pages in somebody else's pool
  kWriteOverdue = 5,    // quarantined: the writer was asked to stop and has not answered
  kLedgerMismatch = 6,  // quarantined: directory and ledger name different bytes
  kOverQuota = 7,       // adopted past a quota, drained
  kMadeRoom =
      8,  // a policy chose it: its pool was over the high watermark, or a store found no room
  kMadeRoomInNamespace = 9,  // a policy chose it: its namespace was near its quota
  kPoolDraining = 10,        // an operator drains its pool
  kNamespaceEvicted = 11,    // an operator evicted its namespace
  kPoolTrimmed = 12,         // a policy chose it: an operator asked the pool to shrink
};
inline constexpr Why kWhyLast = Why::kPoolTrimmed;

// How a pin keeps a copy from being evicted by a policy. It never keeps memory from being proven
// gone.
enum class PinKind : uint8_t {
  kSoft = 1,  // until its time is over
  kHard = 2,  // until it is taken off; all of a pool's stay under its low watermark
};

std::string_view name_of(Medium);
std::string_view name_of(Scope);
std::string_view name_of(ReplicaState);
std::string_view name_of(StoreCode);
std::string_view name_of(MissReason);
std::string_view name_of(Why);
std::string_view name_of(PinKind);

inline constexpr size_t kDigestBytesMin = 16;
inline constexpr size_t kDigestBytesMax = 32;

// Digest of a prefix through one chunk. Shorter digests of a namespace are zero-padded here; the
// width is the namespace's.
struct Digest {
  std::array<uint8_t, kDigestBytesMax> bytes{};
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// Which object: 40 bytes. The namespace is stored narrow because a million of these are kept.
struct ObjectKey {
  Digest digest;
  uint32_t namespace_number = 0;
  uint16_t shard = 0;
  uint16_t part = 0;

  NamespaceId namespace_id() const { return NamespaceId(namespace_number); }
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

// Digests are uniformly distributed by construction (they are cryptographic or xxh3), so eight of
// their bytes, mixed with the rest of the key, hash well. Salted inputs come from tenants, who can
// only slow themselves down.
inline uint64_t hash_of(const ObjectKey& key) {
  uint64_t a = 0;
  uint64_t b = 0;
  std::memcpy(&a, key.digest.bytes.data(), 8);
  std::memcpy(&b, key.digest.bytes.data() + 8, 8);
  uint64_t h = a ^ (b * 0x9E3779B97F4A7C15u);
  h ^= (uint64_t{key.namespace_number} << 32 | uint64_t{key.shard} << 16 | key.part) *
       0xD6E8FEB86659FD93u;
  h ^= h >> 32;
  return h * 0xD6E8FEB86659FD93u;
}

}  // namespace berth
