// What an engine says to the client library and hears from it, as plain values: no gRPC, no
// protobuf. Enumerators carry the numbers of proto/berth/v1/types.proto.
//
// Shapes: a batch is n items. `digests` is one byte string of n digests of the namespace's width,
// back to back; every other column has n elements, or one for all, or none where a default is
// named.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace berth::client {

// What became of one item of a store.
enum class StoreCode : uint8_t {
  kUnspecified = 0,
  kGranted = 1,         // write the bytes, then finish the store
  kAlreadyPresent = 2,  // readable by this engine already: nothing to write
  kBeingWritten = 3,    // somebody else writes it; it may yet abort
  kSkippedPoolFull = 4,
  kSkippedNoPool = 5,
  kSkippedNamespaceQuota = 6,
  kSkippedTooLarge = 7,
  kSkippedNoHole = 8,
  kSkippedDropped = 9,
  kSkippedUnavailable = 10,  // worker or server out of reach, breaker open, or too much unsettled
  kSkippedCancelled = 11,    // the server asked to stop before the bytes were written
  kSkippedSessionLimit = 12,
};

// What became of one granted item when its store was finished.
enum class CommitCode : uint8_t {
  kUnspecified = 0,
  kCommitted = 1,    // readable by everybody who may
  kClosed = 2,       // cancelled, aborted or dropped: nothing landed
  kUnknown = 3,      // the server has no such reservation
  kUnavailable = 4,  // outcome not known yet; the library goes on until it is
};

enum class ChunkClass : uint8_t {
  kUnspecified = 0,
  kMiss = 1,
  kL1Local = 2,
  kL1Shared = 3,
  kRestorable = 4,
  kPending = 5,
};

// Why the first chunk past the usable prefix is a miss.
enum class MissReason : uint8_t {
  kNone = 0,  // there was no miss
  kNotPresent = 1,
  kIncomplete = 2,
  kBeingWritten = 3,
  kNotAccessible = 4,
  kOwnerSilent = 5,
  kUnverified = 6,
  kRetiring = 7,
  kQuarantined = 8,
  kStoreDegraded = 9,
  kUnavailable =
      10,  // worker or server not reached in time, or not asked because the breaker is open
};

enum class LoadState : uint8_t {
  kComplete = 1,  // every span can be read now
  kPending = 2,   // some chunks are being restored
  kFailed = 3,
};

// Names as in docs and metrics: "skipped_pool_full", "not_present", "l1_local".
std::string_view name_of(StoreCode code);
std::string_view name_of(CommitCode code);
std::string_view name_of(ChunkClass chunk_class);
std::string_view name_of(MissReason reason);

// Everything that makes KV compatible; see NamespaceSpec in types.proto for each field. Immutable
// once registered: opening it with any other field is refused, naming the field.
struct NamespaceSpec {
  std::string name;  // required
  std::string application;
  std::string model;  // required: exact weights revision
  std::string adapter;
  std::string tokenizer;
  std::string dtype;  // required
  uint32_t layers = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  std::string storage_format;
  uint32_t storage_version = 0;
  uint32_t chunk_tokens = 0;  // required
  uint32_t tensor_parallel = 1;
  uint32_t pipeline_parallel = 1;
  uint32_t shards = 1;        // of one complete chunk
  uint32_t parts = 1;         // of one complete shard
  uint32_t digest_bytes = 0;  // required, 16 to 32
};

// An opened namespace. A plain value: copy it freely. Good for the client that opened it, also
// after the client joined again.
struct Namespace {
  NamespaceId id;
  Fingerprint fingerprint;
  uint32_t digest_bytes = 0;
  uint32_t shards = 1;
  uint32_t parts = 1;
};

// Which worker must be able to read a shard. Left out, the engine's own worker reads every shard.
struct Target {
  uint32_t shard = 0;
  SessionId session;
};

// A prefix chain: the digest of the prefix through each chunk, first chunk first.
struct ChainRequest {
  Namespace name_space = {};
  std::span<const std::byte> digests = {};
  std::span<const Target> targets = {};
};

struct Probe {
  uint32_t usable_chunks = 0;
  std::vector<ChunkClass> classes = {};  // usable_chunks elements
  MissReason miss_reason = MissReason::kNone;
};

struct StoreRequest {
  Namespace name_space = {};
  std::span<const std::byte> digests = {};
  std::span<const uint32_t> shards = {};  // n, one for all, or none: shard 0
  std::span<const uint32_t> parts = {};   // n, one for all, or none: part 0
  std::span<const uint64_t> sizes = {};   // n or one for all; bytes, at least 1
  // What eviction does better with; optional. Index of each item's chunk in the chain of its prompt
  // (n elements, or none), and whether the last of them is the prompt's last chunk.
  std::span<const uint32_t> positions = {};
  bool ends_chain = false;
  // How long the write may take before the server asks this engine to stop. Zero: the server's
  // default.
  Duration write_within = {0};
};

// One item of an open store.
struct StoreItem {
  StoreCode code = StoreCode::kUnspecified;
  // Granted items: where to write, `size` bytes in mapped pool memory. Empty otherwise.
  std::span<std::byte> bytes;
};

struct BreakerOptions {
  uint32_t failures_max = 5;  // so many in a row open the breaker
  Duration open_for_min = milliseconds(50);
  Duration open_for_max = seconds(2);  // doubled at every failed trial up to this
};

struct ClientOptions {
  std::string socket;     // required: the worker's unix socket; descriptors come from "<socket>.fd"
  std::string engine_id;  // required: 1 to 64 of A-Z a-z 0-9 . _ -
  // How long one call may take, queueing included. Past it the answer is an outage's (miss,
  // skipped).
  Duration probe_deadline = milliseconds(5);
  Duration load_deadline = milliseconds(500);
  Duration store_deadline = milliseconds(500);  // begin_store
  Duration finish_deadline = seconds(2);   // finish_store, retries under the same number included
  Duration control_deadline = seconds(5);  // open_namespace, release, renew, abort_store, leave
  Duration join_deadline = seconds(10);    // Client::join, and one try to join again
  Duration rejoin_after_min = milliseconds(20);  // back-off between tries, with jitter
  Duration rejoin_after_max = milliseconds(500);
  BreakerOptions breaker;
  // Bounds of what one client may have out; at one, load misses and begin_store skips.
  uint32_t loads_max = 1024;  // handles held, releases not yet answered included
  uint32_t stores_max = 256;  // stores open, aborts not yet answered included
};

// Counted since the client was made; copied as one consistent picture.
struct ClientStats {
  bool joined = false;            // attached to a worker now
  bool server_reachable = false;  // what the worker last said about its server
  bool breaker_open = false;
  uint64_t joins = 0;  // 1 + times joined again
  uint64_t breaker_opened = 0;
  uint64_t calls = 0;  // sent to the worker
  uint64_t calls_timed_out = 0;
  uint64_t calls_failed = 0;  // transport failures
  uint64_t calls_short = 0;   // answered without asking: not joined, breaker open, or at a bound
  uint64_t misses_unavailable = 0;    // probes and loads answered as an outage
  uint64_t skips_unavailable = 0;     // items of begin_store answered as an outage
  uint64_t cancels = 0;               // stores that the server asked to stop
  uint64_t revokes = 0;               // handles that the server asked back
  uint64_t operations_abandoned = 0;  // outcome unknown at their deadline, handed to the background
  uint64_t operations_settled = 0;    // of these: answered since, and what they granted given back
  uint64_t operations_unsettled = 0;  // of these: still open
  uint64_t spans_refused =
      0;  // locations outside of a pool that is mapped: a bug of the worker, never touched
};

}  // namespace berth::client
