// berth::Client: what an engine links. It joins the berth-worker on its host, maps the worker's
// pools, and asks for KV chunks by prefix digest; the engine reads and writes the bytes in place.
//
//   auto client = Client::join({.socket = "/run/berth/w0.sock", .engine_id = "engine-0"});
//   auto kv = (*client)->open_namespace(spec);
//   auto load = (*client)->load({*kv, digests});               // protects the longest complete
//   prefix copy from load->bytes(chunk), then check load->valid()     // at the END of the read
//   auto store = (*client)->begin_store({.name_space = *kv, .digests = rest, .sizes = one_size});
//   write into every granted item's bytes, then (*client)->finish_store(*store)
//
// An outage is a miss: when worker or server cannot be reached in time, probe and load answer a
// miss with reason kUnavailable and begin_store skips every item, at once while the breaker is
// open. Errors are for requests that make no sense (kInvalidArgument, kUnknownNamespace, ...) and
// for things whose worker is gone (kRejoin). Nothing throws. It ends by itself: the library joins
// again, with back-off, for ever.
//
// Threads: every method may be called from any thread; one PendingStore or LoadHandle belongs to
// one thread at a time. The client runs two threads of its own, and one for each pool that was just
// mapped (populate.h). It does not survive fork() in the child: the child has no mapping
// (MADV_DONTFORK) and must not touch the client; its inherited descriptors close at exec.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/error.h"
#include "worker/client/types.h"

namespace berth::client {

class Core;
struct StoreRecord;
struct LoadRecord;

// Granted room that is being written. Destroying it aborts, in the background, what was neither
// finished nor aborted: do so only when nothing writes into its spans any more. Keeps the pool
// mapping alive.
class PendingStore {
 public:
  PendingStore();  // no items
  PendingStore(PendingStore&&) noexcept;
  PendingStore& operator=(PendingStore&&) noexcept;
  ~PendingStore();

  // In request order. The spans stay mapped as long as this object lives, whatever becomes of the
  // worker.
  std::span<const StoreItem> items() const;
  uint32_t granted_count() const;
  // False once the server asked to stop (it is overdue), or the worker is gone: stop writing, then
  // abort.
  bool valid() const;

 private:
  friend class Core;
  explicit PendingStore(std::shared_ptr<StoreRecord> record);
  std::shared_ptr<StoreRecord> record_;
};

// Read protection over the chunks of a prefix. Destroying it gives the protection back, in the
// background: do so only when nothing reads its spans any more. Keeps the pool mapping alive.
class LoadHandle {
 public:
  LoadHandle();  // zero chunks
  LoadHandle(LoadHandle&&) noexcept;
  LoadHandle& operator=(LoadHandle&&) noexcept;
  ~LoadHandle();

  uint32_t chunks() const;
  ChunkClass chunk_class(uint32_t chunk) const;
  // The bytes of one part. Empty while the chunk is pending. Indexes past the end are a bug
  // (CHECK).
  std::span<const std::byte> bytes(uint32_t chunk, uint32_t shard = 0, uint32_t part = 0) const;
  // Why the chain ended here.
  MissReason miss_reason() const;
  // kComplete from the start for chunks in L1.
  LoadState state() const;
  // Waits until a pending handle is complete or failed, at most `within`. Errors: kRejoin,
  // kDeadlineExceeded.
  Result<LoadState> wait(Duration within);
  // Whether the protection still held when this was called. Check it at the END of a read: true
  // means that every byte read before the call was the chunk's. False after a revoke, a refused
  // renewal, or when the worker went away; then treat what was read as a miss and destroy the
  // handle.
  bool valid() const;

 private:
  friend class Core;
  explicit LoadHandle(std::shared_ptr<LoadRecord> record);
  std::shared_ptr<LoadRecord> record_;
};

class Client {
 public:
  // Joins the worker, retrying until options.join_deadline. Errors: kInvalidArgument (socket,
  // engine id), kUnsupportedVersion, kPermissionDenied, at once; kUnavailable when the worker did
  // not answer in time.
  static Result<std::unique_ptr<Client>> join(ClientOptions options);
  // Leaves if it can. Handles and stores that outlive the client keep their mapping, and nothing
  // else.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Registers the namespace or opens the one of that name; idempotent. Errors: kNamespaceMismatch
  // (names the field), kInvalidArgument, kLimitReached, kUnavailable.
  Result<Namespace> open_namespace(const NamespaceSpec& spec);

  // The longest usable prefix of a chain of n digests, n from 1 to the server's batch bound.
  // Protects nothing. An outage, and a call past probe_deadline, is zero chunks with kUnavailable.
  // Errors: kInvalidArgument (digests not a multiple of the width, bound exceeded),
  // kUnknownNamespace (open it again).
  Result<Probe> probe(const ChainRequest& request);

  // Asks for room for n items. Per item a code, and a span for each granted one. An outage skips
  // every item with kSkippedUnavailable; should the request have reached the server, what it
  // granted is given back in the background. Errors: kInvalidArgument, kUnknownNamespace.
  Result<PendingStore> begin_store(const StoreRequest& request);

  // The bytes of all granted items that are still open, or of these (indexes into items()), are
  // complete. One code for each item named, in that order; with no list, for each item that was
  // still open, in item order. Retried under one operation number until finish_deadline;
  // kUnavailable then means that the library goes on in the background. Items that answer kClosed
  // or kUnknown are aborted. A cancelled store answers kClosed for every item. Errors: kRejoin (the
  // worker is gone, nothing landed that can be relied on), kInvalidArgument (not granted, or no
  // longer open).
  Result<std::vector<CommitCode>> finish_store(PendingStore& store);
  Result<std::vector<CommitCode>> finish_store(PendingStore& store,
                                               std::span<const uint32_t> items);

  // Nothing of this engine touches the spans of these items (all open ones without a list) any
  // more. Always succeeds from the caller's view: what the worker did not confirm is repeated in
  // the background.
  void abort_store(PendingStore& store);
  void abort_store(PendingStore& store, std::span<const uint32_t> items);

  // Protects the longest complete prefix of the chain, chunk by chunk all or nothing. A handle of
  // zero chunks is a miss; an outage is one with kUnavailable. `ttl`: how long before the server
  // may ask for it back (zero: its default). Errors: kInvalidArgument, kUnknownNamespace.
  Result<LoadHandle> load(const ChainRequest& request, Duration ttl = {0});

  // Gives handles back, in one call to the worker; they are empty afterwards. What the worker did
  // not confirm within control_deadline is repeated in the background.
  void release(std::span<LoadHandle> handles);
  void release(LoadHandle& handle) { release(std::span(&handle, 1)); }

  // Asks for `ttl` more (zero: the server's default). True for each handle that was renewed; a
  // refused one is not valid() any more. Errors: kUnavailable: nothing is known about any of them.
  Result<std::vector<bool>> renew(std::span<const LoadHandle* const> handles, Duration ttl = {0});

  // Unmaps everything and ends the session. Errors: kStillMapped while handles or stores exist,
  // nothing is done. Afterwards every call answers as in an outage, and the client does not join
  // again.
  Result<> leave();

  // Waits until a worker is joined, at most `within`. For engines that would rather wait than miss.
  bool wait_joined(Duration within);

  ClientStats stats() const;

 private:
  explicit Client(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace berth::client

namespace berth {
using client::Client;
using client::ClientOptions;
}  // namespace berth
