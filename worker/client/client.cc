#include "worker/client/client.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "worker/client/core.h"

namespace berth::client {

// ---- PendingStore -----------------------------------------------------------------------------

PendingStore::PendingStore() = default;
PendingStore::PendingStore(std::shared_ptr<StoreRecord> record) : record_(std::move(record)) {}
PendingStore::PendingStore(PendingStore&&) noexcept = default;

PendingStore& PendingStore::operator=(PendingStore&& other) noexcept {
  PendingStore old(std::move(*this));
  record_ = std::move(other.record_);
  return *this;
}

PendingStore::~PendingStore() {
  if (record_ && record_->core) record_->core->forget(*record_);
}

std::span<const StoreItem> PendingStore::items() const {
  return record_ ? std::span<const StoreItem>(record_->items) : std::span<const StoreItem>();
}

uint32_t PendingStore::granted_count() const {
  const std::span<const StoreItem> all = items();
  return static_cast<uint32_t>(std::count_if(all.begin(), all.end(), [](const StoreItem& item) {
    return item.code == StoreCode::kGranted;
  }));
}

bool PendingStore::valid() const { return !record_ || !record_->core || record_->is_valid(); }

// ---- LoadHandle -------------------------------------------------------------------------------

LoadHandle::LoadHandle() = default;
LoadHandle::LoadHandle(std::shared_ptr<LoadRecord> record) : record_(std::move(record)) {}
LoadHandle::LoadHandle(LoadHandle&&) noexcept = default;

LoadHandle& LoadHandle::operator=(LoadHandle&& other) noexcept {
  LoadHandle old(std::move(*this));
  record_ = std::move(other.record_);
  return *this;
}

LoadHandle::~LoadHandle() {
  if (record_ && record_->core) record_->core->forget(*record_);
}

uint32_t LoadHandle::chunks() const {
  return record_ ? static_cast<uint32_t>(record_->classes.size()) : 0;
}

ChunkClass LoadHandle::chunk_class(uint32_t chunk) const {
  BERTH_CHECK(chunk < chunks(), "chunk index past the end");
  return record_->classes[chunk];
}

std::span<const std::byte> LoadHandle::bytes(uint32_t chunk, uint32_t shard, uint32_t part) const {
  BERTH_CHECK(chunk < chunks() && shard < record_->shards && part < record_->parts,
              "chunk, shard or part index past the end");
  return record_->spans[(size_t{chunk} * record_->shards + shard) * record_->parts + part];
}

MissReason LoadHandle::miss_reason() const {
  return record_ ? record_->miss_reason : MissReason::kNone;
}

LoadState LoadHandle::state() const { return record_ ? record_->state : LoadState::kComplete; }

Result<LoadState> LoadHandle::wait(Duration within) {
  if (!record_ || !record_->core) return LoadState::kComplete;
  return record_->core->wait(*record_, within);
}

bool LoadHandle::valid() const { return !record_ || !record_->core || record_->is_valid(); }

// ---- Client -----------------------------------------------------------------------------------

Result<std::unique_ptr<Client>> Client::join(ClientOptions options) {
  auto core = std::make_shared<Core>(std::move(options));
  if (const Result<> started = core->start(); !started) return tl::unexpected(started.error());
  return std::unique_ptr<Client>(new Client(std::move(core)));
}

Client::Client(std::shared_ptr<Core> core) : core_(std::move(core)) {}
Client::~Client() { core_->stop(); }

Result<Namespace> Client::open_namespace(const NamespaceSpec& spec) {
  return core_->open_namespace(spec);
}
Result<Probe> Client::probe(const ChainRequest& request) { return core_->probe(request); }
Result<PendingStore> Client::begin_store(const StoreRequest& request) {
  return core_->begin_store(request);
}

Result<std::vector<CommitCode>> Client::finish_store(PendingStore& store) {
  return core_->finish_store(store, Core::open_items(store));
}
Result<std::vector<CommitCode>> Client::finish_store(PendingStore& store,
                                                     std::span<const uint32_t> items) {
  return core_->finish_store(store, items);
}

void Client::abort_store(PendingStore& store) {
  core_->abort_store(store, Core::open_items(store));
}
void Client::abort_store(PendingStore& store, std::span<const uint32_t> items) {
  core_->abort_store(store, items);
}

Result<LoadHandle> Client::load(const ChainRequest& request, Duration ttl) {
  return core_->load(request, ttl);
}
void Client::release(std::span<LoadHandle> handles) { core_->release(handles); }
Result<std::vector<bool>> Client::renew(std::span<const LoadHandle* const> handles, Duration ttl) {
  return core_->renew(handles, ttl);
}
Result<> Client::leave() { return core_->leave(); }
bool Client::wait_joined(Duration within) { return core_->wait_joined(within); }
ClientStats Client::stats() const { return core_->stats(); }

}  // namespace berth::client
