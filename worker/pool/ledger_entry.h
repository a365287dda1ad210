// The plain types of the ledger: what it holds of one replica, what it is asked and what it
// answers. Life of an entry (ledger.h has the operations; numbers are the protocol's, never
// renumber):
//
//   allocate ─▶ WRITING ─written─▶ WRITTEN ─sealed─▶ SEALED ─reclaim, no span out─▶ RECLAIMED
//   ─acked─▶ gone
//                  │ abort            │ abort            (reclaim works from every state)
//                  ▼                  ▼
//                 gone, once no span is out; FORGOTTEN until then
//
// QUARANTINED: the server said so at a re-attach. Keeps its pages, takes no reader, until
// reclaimed. FORGOTTEN: the server no longer counts it, but a span is still out: the pages stay
// used, nothing is reported, and it is gone with the last span.
#pragma once

#include <absl/container/btree_map.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/ids.h"

namespace berth::pool {

inline constexpr size_t kDigestBytesMax = 32;

enum class LedgerState : uint8_t {
  kWriting = 1,
  kWritten = 2,
  kSealed = 3,
  kReclaimed = 4,  // holds no memory; kept until the server confirmed the acknowledgement
  kQuarantined = 5,
  kForgotten = 6,  // never on the wire
};
inline constexpr size_t kLedgerStateCount = 7;  // with the unused zero
std::string_view name_of(LedgerState state);

// What makes two digests comparable. Interned: an entry holds a 4-byte index.
struct LedgerNamespace {
  Fingerprint fingerprint;
  uint32_t digest_bytes = 0;  // 16 to 32
  friend auto operator<=>(const LedgerNamespace&, const LedgerNamespace&) = default;
};

struct LedgerEntry {
  ReplicaId replica;
  SessionId client;               // who reserved it
  OperationNumber operation = 0;  // by which operation of the client
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  std::array<char, kDigestBytesMax> digest_padded{};
  uint32_t namespace_index = 0;
  uint32_t pool_index = 0;
  uint32_t shard = 0;
  uint32_t part = 0;
  uint32_t readers = 0;  // reader spans out, over all leases
  LedgerState state = LedgerState::kWriting;
  uint8_t digest_bytes = 0;
  bool writer_out = false;     // the writer may still touch the bytes
  bool reclaim_asked = false;  // acknowledged when the last span is back

  std::string_view digest() const { return {digest_padded.data(), digest_bytes}; }
  bool is_open() const { return state == LedgerState::kWriting || state == LedgerState::kWritten; }
  bool has_span_out() const { return writer_out || readers > 0; }
  bool holds_pages() const { return state != LedgerState::kReclaimed; }
};
static_assert(sizeof(LedgerEntry) <= 104, "an entry costs memory a million times over");

struct LedgerPool {
  PoolId pool;
  uint64_t page_bytes = 0;
  uint64_t capacity_bytes = 0;
  uint64_t budget_bytes = 0;  // zero: the capacity
};

// One item that the server granted.
struct LedgerGrant {
  ReplicaId replica;
  PoolId pool;
  LedgerNamespace name_space;
  std::string_view digest;
  uint32_t shard = 0;
  uint32_t part = 0;
  uint64_t size_bytes = 0;
  SessionId client;
  OperationNumber operation = 0;
};

enum class AllocateCode : uint8_t {
  kAllocated,
  kNoHole,     // room, but no contiguous run of pages
  kOverLimit,  // would pass the pool's capacity or budget: the server granted too much
  kDuplicate,  // the ledger holds this ReplicaId already
  kUnknownPool,
  kBadGrant,    // no id, size zero, or a digest of another width than its namespace
  kLedgerFull,  // a bound of LedgerLimits was reached
};
std::string_view name_of(AllocateCode code);
struct Allocation {
  AllocateCode code = AllocateCode::kBadGrant;
  uint64_t offset = 0;  // with kAllocated
};

enum class WrittenCode : uint8_t {
  kWritten,  // now or before; commit it
  kClosed,   // the server gave it up or took it back: nothing to commit, the span is back
  kUnknown,  // not held, or reserved by another client
};

// Whether the engine may still write when its reservation ends.
enum class WriterSpan : uint8_t { kReturned, kMayBeOut };

// A location as the server named it in an acquire.
struct SpanRequest {
  ReplicaId replica;
  PoolId pool;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  // It lies in a pool of another worker that this one imported: not ours to check or to free. Held
  // under the lease all the same, because a re-attach states what this worker's clients read.
  bool is_imported = false;
};
enum class SpanCode : uint8_t {
  kOpen,
  kUnknown,      // the ledger does not hold this replica
  kMoved,        // held, but at another place or of another size
  kNotReadable,  // held, but not written, reclaimed, being reclaimed, or quarantined
};

// One lease under which spans are out.
struct LedgerLease {
  SessionId client;
  OperationNumber operation = 0;
  std::vector<ReplicaId> replicas;  // as opened; twice when it was opened twice
  std::vector<ReplicaId> imported;  // the same, in imported pools
};
using LedgerLeases = absl::btree_map<LeaseId, LedgerLease>;

// The server's word on one entry at a re-attach. The protocol's numbers.
enum class Verdict : uint8_t { kKeep = 1, kFree = 2, kReclaim = 3, kAdopted = 4, kQuarantine = 5 };
enum class VerdictCode : uint8_t {
  kKept,
  kFreed,    // after kReclaim it is also to be acknowledged, see take_acknowledgements()
  kWaiting,  // goes when the last span is back
  kQuarantined,
  kUnknown,   // not held any more; nothing to do
  kNonsense,  // makes no sense for what is held; nothing changed. Worth a log line.
};

struct LedgerUsage {
  PoolId pool;
  uint64_t page_bytes = 0;
  uint64_t capacity_bytes = 0;
  uint64_t budget_bytes = 0;
  uint64_t allocated_bytes = 0;  // pages; the sum of the five below
  uint64_t writing_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t sealed_bytes = 0;
  uint64_t quarantined_bytes = 0;
  uint64_t forgotten_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t largest_hole_bytes = 0;
  uint64_t replicas = 0;   // that hold pages
  uint64_t spans_out = 0;  // writers and readers
};

struct ClientSpans {
  uint64_t writers = 0;
  uint64_t readers = 0;
  uint64_t leases = 0;
  uint64_t bytes = 0;  // of all spans; a replica that is open twice counts twice
  friend auto operator<=>(const ClientSpans&, const ClientSpans&) = default;
};

// Part of a re-attach: entries of one pool and one namespace, in ascending order of id.
struct LedgerChunkView {
  PoolId pool;
  LedgerNamespace name_space;
  std::vector<const LedgerEntry*> entries;  // good until the ledger next changes
};

}  // namespace berth::pool
