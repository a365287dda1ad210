#include "server/store/record_messages.h"

#include <algorithm>
#include <limits>

#include "server/store/columns.h"

namespace berth {
namespace {

void append_big_endian(uint64_t value, std::string& out) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

uint64_t big_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

template <class Enum>
bool read_enum(uint32_t number, Enum min, Enum max, Enum& out) {
  if (number < static_cast<uint32_t>(min) || number > static_cast<uint32_t>(max)) return false;
  out = static_cast<Enum>(number);
  return true;
}

template <class Strings>
void write_all(const std::vector<std::string>& from, Strings* to) {
  for (const std::string& text : from) *to->Add() = text;
}

}  // namespace

size_t width_of(const Digest& digest) {
  size_t width = kDigestBytesMax;
  while (width > kDigestBytesMin && digest.bytes[width - 1] == 0) --width;
  return width;
}

std::string_view view_of(const Digest& digest, size_t width) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), width};
}

bool read_digest(std::string_view bytes, Digest& digest) {
  if (bytes.size() < kDigestBytesMin || bytes.size() > kDigestBytesMax) return false;
  digest = {};
  std::memcpy(digest.bytes.data(), bytes.data(), bytes.size());
  return true;
}

bool read_key(uint64_t namespace_id, uint32_t shard, uint32_t part, ObjectKey& key) {
  if (namespace_id == 0 || namespace_id > std::numeric_limits<uint32_t>::max()) return false;
  if (shard > std::numeric_limits<uint16_t>::max() || part > std::numeric_limits<uint16_t>::max())
    return false;
  key.namespace_number = static_cast<uint32_t>(namespace_id);
  key.shard = static_cast<uint16_t>(shard);
  key.part = static_cast<uint16_t>(part);
  return true;
}

bool read_state(uint32_t number, uint32_t why_number, ReplicaState& state, Why& why) {
  return read_enum(number, ReplicaState::kReady, ReplicaState::kQuarantined, state) &&
         read_enum(why_number, Why::kNone, kWhyLast, why);
}

std::string id_bytes(const Id128& id) {
  std::string bytes;
  if (!id.valid()) return bytes;
  append_big_endian(id.high, bytes);
  append_big_endian(id.low, bytes);
  return bytes;
}

bool read_id(std::string_view bytes, Id128& id) {
  if (!bytes.empty() && bytes.size() != 16) return false;
  id = bytes.empty() ? Id128{} : Id128{big_endian(bytes.substr(0, 8)), big_endian(bytes.substr(8))};
  return true;
}

// ---- Namespaces
// -------------------------------------------------------------------------------------------

void write(const Namespace& record, store::v1::NamespaceRecord& message) {
  const NamespaceSpec& spec = record.spec;
  message.set_name(spec.name);
  message.set_application(spec.application);
  message.set_model(spec.model);
  message.set_adapter(spec.adapter);
  message.set_tokenizer(spec.tokenizer);
  message.set_dtype(spec.dtype);
  message.set_layers(spec.layers);
  message.set_kv_heads(spec.kv_heads);
  message.set_head_dim(spec.head_dim);
  message.set_storage_format(spec.storage_format);
  message.set_storage_version(spec.storage_version);
  message.set_chunk_tokens(spec.chunk_tokens);
  message.set_tensor_parallel(spec.tensor_parallel);
  message.set_pipeline_parallel(spec.pipeline_parallel);
  message.set_shards(spec.shards);
  message.set_parts(spec.parts);
  message.set_digest_bytes(spec.digest_bytes);
  message.set_quota_bytes(record.quota_bytes);
  message.set_evicted_below(record.evicted_below.value());
  message.set_fingerprint(id_bytes(record.fingerprint));
}

bool read(const store::v1::NamespaceRecord& message, Namespace& record) {
  NamespaceSpec& spec = record.spec;
  spec.name = message.name();
  spec.application = message.application();
  spec.model = message.model();
  spec.adapter = message.adapter();
  spec.tokenizer = message.tokenizer();
  spec.dtype = message.dtype();
  spec.layers = message.layers();
  spec.kv_heads = message.kv_heads();
  spec.head_dim = message.head_dim();
  spec.storage_format = message.storage_format();
  spec.storage_version = message.storage_version();
  spec.chunk_tokens = message.chunk_tokens();
  spec.tensor_parallel = message.tensor_parallel();
  spec.pipeline_parallel = message.pipeline_parallel();
  spec.shards = message.shards();
  spec.parts = message.parts();
  spec.digest_bytes = message.digest_bytes();
  record.quota_bytes = message.quota_bytes();
  record.evicted_below = ReplicaId(message.evicted_below());
  return read_id(message.fingerprint(), record.fingerprint);
}

// ---- Sessions
// ---------------------------------------------------------------------------------------------

void write(const Session& record, store::v1::SessionRecord& message) {
  message.set_role(static_cast<uint32_t>(record.role));
  message.set_token(id_bytes(record.token));
  message.set_request_token(id_bytes(record.request_token));
  message.set_name(record.name);
  message.set_node(record.node);
  message.set_boot_id(id_bytes(record.boot_id));
  message.set_incarnation(record.incarnation);
  message.set_worker(record.worker.value());
  message.set_worker_name(record.worker_name);
  write_all(record.life_names, message.mutable_life_names());
  write_all(record.access_domains, message.mutable_access_domains());
  write_all(record.write_order, message.mutable_write_order());
  message.set_operation_low_water(record.operation_low_water);
  message.set_ending(record.ending);
  message.set_version(record.version);
  message.set_host_memory_bytes(record.host_memory_bytes);
}

bool read(const store::v1::SessionRecord& message, Session& record) {
  record.name = message.name();
  record.node = message.node();
  record.incarnation = message.incarnation();
  record.worker = SessionId(message.worker());
  record.worker_name = message.worker_name();
  record.life_names.assign(message.life_names().begin(), message.life_names().end());
  record.access_domains.assign(message.access_domains().begin(), message.access_domains().end());
  record.write_order.assign(message.write_order().begin(), message.write_order().end());
  record.operation_low_water = message.operation_low_water();
  record.ending = message.ending();
  record.version = message.version();
  record.host_memory_bytes = message.host_memory_bytes();
  return read_enum(message.role(), Role::kWorker, Role::kClient, record.role) &&
         read_id(message.token(), record.token) &&
         read_id(message.request_token(), record.request_token) &&
         read_id(message.boot_id(), record.boot_id);
}

// ---- Pools
// ------------------------------------------------------------------------------------------------

void write(const Pool& record, store::v1::PoolRecord& message) {
  const PoolSpec& spec = record.spec;
  message.set_owner(record.owner.value());
  message.set_owner_name(record.owner_name);
  message.set_node(record.node);
  message.set_name(spec.name);
  message.set_medium(static_cast<uint32_t>(spec.medium));
  message.set_tier(static_cast<uint32_t>(spec.tier));
  message.set_scope(static_cast<uint32_t>(spec.scope));
  message.set_engine(spec.engine);
  message.set_access_domain(spec.access_domain);
  message.set_capacity_bytes(spec.capacity_bytes);
  message.set_page_bytes(spec.page_bytes);
  message.set_budget_bytes(spec.budget_bytes);
  message.set_backing_bytes(spec.backing_bytes);
  message.set_pinned_bytes(spec.pinned_bytes);
  message.set_state(static_cast<uint32_t>(record.state));
  write_all(record.importers, message.mutable_importers());
  message.set_boot_id(id_bytes(record.boot_id));
  for (const PoolExport& e : record.exports) {
    store::v1::PoolExportRecord& out = *message.add_exports();
    out.set_importer(e.importer.value());
    out.set_worker(e.worker);
    out.set_life_name(e.life_name);
    out.set_imported(e.imported);
    out.set_unsure(e.unsure);
  }
}

bool read(const store::v1::PoolRecord& message, Pool& record) {
  PoolSpec& spec = record.spec;
  record.owner = SessionId(message.owner());
  record.owner_name = message.owner_name();
  record.node = message.node();
  spec.name = message.name();
  spec.engine = message.engine();
  spec.access_domain = message.access_domain();
  spec.capacity_bytes = message.capacity_bytes();
  spec.page_bytes = message.page_bytes();
  spec.budget_bytes = message.budget_bytes();
  spec.backing_bytes = message.backing_bytes();
  spec.pinned_bytes = message.pinned_bytes();
  record.importers.assign(message.importers().begin(), message.importers().end());
  for (const store::v1::PoolExportRecord& e : message.exports())
    record.exports.push_back({.importer = SessionId(e.importer()),
                              .worker = e.worker(),
                              .life_name = e.life_name(),
                              .imported = e.imported(),
                              .unsure = e.unsure()});
  // Sizes are divided by the page size.
  return spec.page_bytes > 0 && read_id(message.boot_id(), record.boot_id) &&
         read_enum(message.medium(), Medium::kCpu, Medium::kSsd, spec.medium) &&
         read_enum(message.tier(), Tier::kL1, Tier::kL2, spec.tier) &&
         read_enum(message.scope(), Scope::kProcess, Scope::kDomain, spec.scope) &&
         read_enum(message.state(), PoolState::kOpen, PoolState::kDraining, record.state);
}

// ---- Replicas and reservations
// ----------------------------------------------------------------------------

void write(const Replica& record, store::v1::ReplicaRecord& message) {
  const std::string_view digest = view_of(record.key.digest, width_of(record.key.digest));
  message.set_namespace_id(record.key.namespace_number);
  message.set_digest(digest.data(), digest.size());
  message.set_shard(record.key.shard);
  message.set_part(record.key.part);
  message.set_pool(record.pool.value());
  message.set_offset(record.offset);
  message.set_size_bytes(record.size_bytes);
  message.set_state(static_cast<uint32_t>(record.state));
  message.set_why(static_cast<uint32_t>(record.why));
}

bool read(const store::v1::ReplicaRecord& message, Replica& record) {
  record.pool = PoolId(message.pool());
  record.offset = message.offset();
  record.size_bytes = message.size_bytes();
  // RESERVED is never a record of its own: see the reservation.
  return record.pool.valid() &&
         read_key(message.namespace_id(), message.shard(), message.part(), record.key) &&
         read_digest(message.digest(), record.key.digest) &&
         read_state(message.state(), message.why(), record.state, record.why);
}

void write(const Reservation& record, store::v1::ReservationRecord& message) {
  message.set_session(record.session.value());
  message.set_operation(record.operation);
  message.set_granted(record.granted);
  message.set_deadline_millis(record.deadline.millis);
  message.set_write_within_millis(record.write_within.millis);
  message.set_quarantined(record.quarantined);
  if (record.items.empty()) return;
  const std::vector<ReservedItem>& items = record.items;
  message.set_count(static_cast<uint32_t>(items.size()));
  message.set_namespace_id(items[0].key.namespace_number);  // one Reserve names one namespace
  if (items.back().index + 1 != items.size())
    for (const ReservedItem& item : items) message.add_index(item.index);
  size_t width = kDigestBytesMin;
  for (const ReservedItem& item : items) width = std::max(width, width_of(item.key.digest));
  std::string& digests = *message.mutable_digests();
  digests.reserve(width * items.size());
  for (const ReservedItem& item : items) digests.append(view_of(item.key.digest, width));
  using Item = const ReservedItem&;
  write_column(items, *message.mutable_shards(), [](Item item) { return item.key.shard; });
  write_column(items, *message.mutable_parts(), [](Item item) { return item.key.part; });
  write_column(items, *message.mutable_pools(), [](Item item) { return item.pool.value(); });
  write_column(items, *message.mutable_sizes(), [](Item item) { return item.size_bytes; });
}

bool read(const store::v1::ReservationRecord& message, Reservation& record) {
  record.session = SessionId(message.session());
  record.operation = message.operation();
  record.granted = message.granted();
  record.deadline = Time{message.deadline_millis()};
  record.write_within = Duration{message.write_within_millis()};
  record.quarantined = message.quarantined();
  const uint32_t count =
      message.count() > 0 ? message.count() : static_cast<uint32_t>(message.index_size());
  const std::string_view digests = message.digests();
  if (count == 0) return digests.empty();
  const size_t width = digests.size() / count;
  if (count > record.granted || width < kDigestBytesMin || width * count != digests.size())
    return false;
  const int items = static_cast<int>(count);
  if ((message.index_size() != items && message.index_size() != 0) ||
      !is_column(message.shards(), items) || !is_column(message.parts(), items) ||
      !is_column(message.pools(), items) || !is_column(message.sizes(), items))
    return false;
  record.items.resize(count);
  for (int i = 0; i < items; ++i) {
    const auto at = static_cast<uint32_t>(i);
    ReservedItem& item = record.items[at];
    item.index = message.index_size() > 0 ? message.index(i) : at;
    item.pool = PoolId(value_at(message.pools(), i));
    item.size_bytes = value_at(message.sizes(), i);
    if (item.index >= record.granted || !item.pool.valid()) return false;
    if (!read_key(message.namespace_id(), value_at(message.shards(), i),
                  value_at(message.parts(), i), item.key))
      return false;
    if (!read_digest(digests.substr(at * width, width), item.key.digest)) return false;
  }
  return true;
}

// ---- Leases, operations, jobs
// -----------------------------------------------------------------------------

void write(const Lease& record, store::v1::LeaseRecord& message) {
  message.set_session(record.session.value());
  message.set_operation(record.operation);
  message.set_taken_millis(record.taken.millis);
  message.set_ttl_millis(record.ttl.millis);
  message.set_expires_millis(record.expires.millis);
  message.set_revoking(record.revoking);
  message.mutable_steps()->Reserve(static_cast<int>(record.replicas.size()));
  Steps steps;
  for (const ReplicaId id : record.replicas)
    message.mutable_steps()->AddAlreadyReserved(steps.to(id.value()));
}

bool read(const store::v1::LeaseRecord& message, Lease& record) {
  record.session = SessionId(message.session());
  record.operation = message.operation();
  record.taken = Time{message.taken_millis()};
  record.ttl = Duration{message.ttl_millis()};
  record.expires = Time{message.expires_millis()};
  record.revoking = message.revoking();
  record.replicas.reserve(static_cast<size_t>(message.replicas_size() + message.steps_size()));
  for (const uint64_t id : message.replicas()) record.replicas.emplace_back(id);
  Steps steps;
  for (const int64_t step : message.steps()) record.replicas.emplace_back(steps.by(step));
  return record.session.valid();
}

void write(const Operation& record, store::v1::OperationRecord& message) {
  message.set_kind(static_cast<uint32_t>(record.kind));
  message.set_content_hash(record.content_hash);
  message.set_codes(record.codes.data(), record.codes.size());
  message.set_first_replica(record.first.value());
  // A value for many items is read back only where there are as many answers.
  if (!record.pools.empty() && record.pools.size() <= record.codes.size())
    write_column(record.pools, *message.mutable_pools(), [](PoolId id) { return id.value(); });
  else
    for (const PoolId id : record.pools) message.add_pools(id.value());
  if (static_cast<size_t>(message.pools_size()) < record.pools.size())
    message.set_pool_count(static_cast<uint32_t>(record.pools.size()));
  message.set_lease(record.lease.value());
  message.set_miss_reason(static_cast<uint32_t>(record.miss));
}

bool read(const store::v1::OperationRecord& message, Operation& record) {
  record.content_hash = message.content_hash();
  record.codes.assign(message.codes().begin(), message.codes().end());
  record.first = ReplicaId(message.first_replica());
  if (message.pool_count() > 0) {
    if (message.pools_size() != 1 || message.pool_count() > record.codes.size()) return false;
    record.pools.assign(message.pool_count(), PoolId(message.pools(0)));
  } else {
    for (const uint64_t id : message.pools()) record.pools.emplace_back(id);
  }
  record.lease = LeaseId(message.lease());
  return read_enum(message.kind(), OperationKind::kReserve, OperationKind::kAcquire, record.kind) &&
         read_enum(message.miss_reason(), MissReason::kNone, MissReason::kStoreDegraded,
                   record.miss);
}

void write(const Job& record, store::v1::JobRecord& message) {
  message.set_kind(static_cast<uint32_t>(record.kind));
  message.set_pool(record.pool.value());
  message.set_session(record.session.value());
  message.set_cursor(record.cursor);
  message.set_done(record.done);
  message.set_namespace_id(record.namespace_id.value());
  message.set_target_bytes(record.target_bytes);
}

bool read(const store::v1::JobRecord& message, Job& record) {
  record.pool = PoolId(message.pool());
  record.session = SessionId(message.session());
  record.cursor = message.cursor();
  record.done = message.done();
  record.namespace_id = NamespaceId(message.namespace_id());
  record.target_bytes = message.target_bytes();
  return read_enum(message.kind(), JobKind::kDropPool, JobKind::kTrimPool, record.kind);
}

// ---- Pins and the eviction setting
// ----------------------------------------------------------------------------

void write(const Pin& record, store::v1::PinRecord& message) {
  message.set_kind(static_cast<uint32_t>(record.kind));
  message.set_expires_millis(record.expires.millis);
}

bool read(const store::v1::PinRecord& message, Pin& record) {
  record.expires = Time{message.expires_millis()};
  return read_enum(message.kind(), PinKind::kSoft, PinKind::kHard, record.kind);
}

void write(const EvictionSetting& record, store::v1::EvictionRecord& message) {
  message.set_policy(static_cast<uint32_t>(record.kind));
  message.set_high_permille(record.high_permille);
  message.set_low_permille(record.low_permille);
}

bool read(const store::v1::EvictionRecord& message, EvictionSetting& record) {
  record.high_permille = message.high_permille();
  record.low_permille = message.low_permille();
  return record.is_valid() && read_enum(message.policy(), policy::EvictionKind::kLru,
                                        policy::EvictionKind::kAdaptive, record.kind);
}

}  // namespace berth
