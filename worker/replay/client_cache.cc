#include "worker/replay/client_cache.h"

#include <algorithm>

#include "common/log.h"
#include "common/text.h"

namespace berth::replay {
namespace {

// Chunks of one call, below every server's bound on items of a batch.
constexpr uint32_t kItemsPerBatch = 512;

// How long to wait for chunks that are being brought into L1.
constexpr Duration kRestoreWithin = seconds(10);

using client::CommitCode;
using client::MissReason;
using client::StoreCode;

// A worker that went away under an operation: what an outage looks like from inside it.
bool is_outage(const Error& error) {
  return error.reason == Reason::kRejoin || error.reason == Reason::kUnavailable ||
         error.reason == Reason::kDeadlineExceeded;
}

std::span<const std::byte> as_bytes(std::span<const Digest> digests) {
  return {reinterpret_cast<const std::byte*>(digests.data()), digests.size_bytes()};
}

void count_item(StoreCode code, Counts& counts) {
  switch (code) {
    case StoreCode::kGranted:
      break;  // counted when it is finished
    case StoreCode::kAlreadyPresent:
      ++counts.already_present;
      break;
    case StoreCode::kBeingWritten:
      ++counts.being_written;
      break;
    default:
      ++counts.skipped;
      ++counts.skipped_by_reason[std::string(name_of(code))];
      break;
  }
}

}  // namespace

Result<std::unique_ptr<ClientCache>> ClientCache::open(const ClientCacheOptions& options) {
  ClientOptions join;
  join.socket = options.socket;
  join.engine_id = options.engine_id;
  join.join_deadline = options.join_deadline;
  // A replay measures what is right, not what is fast: it waits where an engine would recompute.
  join.probe_deadline = options.probe_deadline;
  join.load_deadline = join.store_deadline = seconds(5);
  join.finish_deadline = seconds(10);
  auto client = Client::join(join);
  if (!client) return tl::unexpected(client.error());
  std::unique_ptr<ClientCache> cache(new ClientCache(options, std::move(*client)));
  if (const Result<> opened = cache->open_namespace(); !opened)
    return tl::unexpected(opened.error());
  return cache;
}

Result<> ClientCache::open_namespace() {
  client::NamespaceSpec spec;
  spec.name = options_.name_space;
  spec.application = "berth-replay";
  spec.model = "berth-replay@1";
  spec.dtype = "words";
  // The size of a block is part of what makes it compatible: another size is another layout.
  spec.storage_format = "splitmix64-" + std::to_string(options_.block_bytes);
  spec.storage_version = 1;
  spec.chunk_tokens = 512;
  spec.shards = options_.shards;
  spec.parts = options_.parts;
  spec.digest_bytes = kDigestBytes;
  const Result<client::Namespace> opened = client_->open_namespace(spec);
  if (!opened) return tl::unexpected(opened.error());
  name_space_ = *opened;
  return {};
}

uint32_t ClientCache::chunks_per_batch() const {
  return std::max(1U, kItemsPerBatch / (options_.shards * options_.parts));
}

// ---- Read -------------------------------------------------------------------------------------

Result<BlockCache::Probed> ClientCache::probe(std::span<const Digest> chain) {
  Probed probed;
  while (!chain.empty()) {
    const auto batch = chain.first(std::min<size_t>(chain.size(), chunks_per_batch()));
    const Result<client::Probe> answer =
        client_->probe({.name_space = name_space_, .digests = as_bytes(batch)});
    if (!answer) return tl::unexpected(answer.error());
    probed.usable_chunks += answer->usable_chunks;
    probed.is_unavailable = answer->miss_reason == MissReason::kUnavailable;
    if (answer->usable_chunks < batch.size()) break;
    chain = chain.subspan(batch.size());
  }
  return probed;
}

Result<BlockCache::Loaded> ClientCache::load(std::span<const Digest> chain) {
  Loaded loaded;
  while (!chain.empty()) {
    const auto batch = chain.first(std::min<size_t>(chain.size(), chunks_per_batch()));
    Result<client::LoadHandle> handle =
        client_->load({.name_space = name_space_, .digests = as_bytes(batch)});
    if (!handle) return tl::unexpected(handle.error());
    if (handle->state() != client::LoadState::kComplete) {
      const Result<client::LoadState> waited = handle->wait(kRestoreWithin);
      if (!waited || *waited != client::LoadState::kComplete) break;
    }
    loaded.is_unavailable = handle->miss_reason() == MissReason::kUnavailable;
    const uint64_t wrong = count_wrong_items(batch, *handle);
    // Asked at the end of the read: without protection nothing that was read counts, good or bad.
    if (!handle->valid()) break;
    loaded.wrong_items += wrong;
    loaded.item_count += uint64_t{handle->chunks()} * options_.shards * options_.parts;
    if (wrong != 0) break;
    loaded.good_chunks += handle->chunks();
    if (handle->chunks() < batch.size()) break;
    chain = chain.subspan(batch.size());
  }
  return loaded;
}

uint64_t ClientCache::count_wrong_items(std::span<const Digest> chain,
                                        const client::LoadHandle& handle) const {
  uint64_t wrong = 0;
  for (uint32_t chunk = 0; chunk < handle.chunks(); ++chunk) {
    for (uint32_t shard = 0; shard < options_.shards; ++shard) {
      for (uint32_t part = 0; part < options_.parts; ++part) {
        const std::span<const std::byte> bytes = handle.bytes(chunk, shard, part);
        const bool is_whole = bytes.size() == options_.block_bytes;
        const auto wrong_at = find_wrong_byte({chain[chunk], shard, part}, bytes);
        if (is_whole && !wrong_at) continue;
        ++wrong;
        if (wrong > 1 || !handle.valid()) continue;
        log::error(
            "wrong_bytes",
            {{"digest", to_hex(std::string_view(reinterpret_cast<const char*>(chain[chunk].data()),
                                                kDigestBytes))},
             {"chunk", chunk},
             {"size", bytes.size()},
             {"offset", wrong_at.value_or(bytes.size())}});
      }
    }
  }
  return wrong;
}

// ---- Write ------------------------------------------------------------------------------------

Result<> ClientCache::store(std::span<const Digest> rest, uint32_t first, Counts& counts) {
  while (!rest.empty()) {
    const auto batch = rest.first(std::min<size_t>(rest.size(), chunks_per_batch()));
    const bool ends_chain = batch.size() == rest.size();
    if (const Result<> stored = store_batch(batch, first, ends_chain, counts); !stored)
      return stored;
    rest = rest.subspan(batch.size());
    first += static_cast<uint32_t>(batch.size());
  }
  return {};
}

BlockIdentity ClientCache::identity_of_item(std::span<const Digest> chunks, size_t item) const {
  const size_t per_chunk = size_t{options_.shards} * options_.parts;
  const size_t within = item % per_chunk;
  return {chunks[item / per_chunk], static_cast<uint32_t>(within / options_.parts),
          static_cast<uint32_t>(within % options_.parts)};
}

uint64_t ClientCache::write_granted(std::span<const Digest> chunks,
                                    const client::PendingStore& store) const {
  uint64_t written = 0;
  for (size_t i = 0; i < store.items().size(); ++i) {
    const client::StoreItem& item = store.items()[i];
    if (item.code != StoreCode::kGranted) continue;
    write_content(identity_of_item(chunks, i), item.bytes);
    ++written;
  }
  return written;
}

Result<> ClientCache::store_batch(std::span<const Digest> chunks, uint32_t first, bool ends_chain,
                                  Counts& counts) {
  const size_t per_chunk = size_t{options_.shards} * options_.parts;
  std::vector<Digest> digests;
  std::vector<uint32_t> shards;
  std::vector<uint32_t> parts;
  std::vector<uint32_t> positions;
  for (size_t item = 0; item < chunks.size() * per_chunk; ++item) {
    const BlockIdentity identity = identity_of_item(chunks, item);
    digests.push_back(identity.digest);
    shards.push_back(identity.shard);
    parts.push_back(identity.part);
    positions.push_back(first + static_cast<uint32_t>(item / per_chunk));
  }
  const uint64_t sizes[] = {options_.block_bytes};
  Result<client::PendingStore> store = client_->begin_store({.name_space = name_space_,
                                                             .digests = as_bytes(digests),
                                                             .shards = shards,
                                                             .parts = parts,
                                                             .sizes = sizes,
                                                             .positions = positions,
                                                             .ends_chain = ends_chain});
  if (!store) return tl::unexpected(store.error());
  for (const client::StoreItem& item : store->items()) count_item(item.code, counts);
  const uint64_t written = write_granted(chunks, *store);
  if (written == 0) return {};
  const Result<std::vector<CommitCode>> codes = client_->finish_store(*store);
  if (!codes) {
    counts.not_stored += written;
    if (is_outage(codes.error())) return {};
    return tl::unexpected(codes.error());
  }
  const auto committed =
      static_cast<uint64_t>(std::count(codes->begin(), codes->end(), CommitCode::kCommitted));
  counts.stored += committed;
  counts.not_stored += written - committed;
  return {};
}

}  // namespace berth::replay
