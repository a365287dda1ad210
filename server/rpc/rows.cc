#include "server/rpc/rows.h"

#include "server/rpc/fields.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

using Attached = berth::Attachment;

uint64_t count(int64_t value) { return static_cast<uint64_t>(value); }

std::string name_of_session(const Directory& directory, SessionId id) {
  const auto* session = directory.find<Session>(id);
  return session ? session->name : "";
}

// As wide as its namespace's digests are.
std::string digest_of(const ObjectKey& key, const Namespace* ns) {
  const size_t width = ns ? ns->spec.digest_bytes : kDigestBytesMax;
  const auto& digest = key.digest.bytes;
  return {digest.begin(), digest.begin() + static_cast<ptrdiff_t>(width)};
}

v1::PoolUsage usage_row(const PoolEntry& entry) {
  const PoolSpec& spec = entry.pool.spec;
  const PoolUsage& usage = entry.usage;
  v1::PoolUsage row;
  row.set_capacity_bytes(spec.capacity_bytes);
  row.set_budget_bytes(spec.budget_bytes);
  row.set_backing_bytes(spec.backing_bytes);
  row.set_pinned_bytes(spec.pinned_bytes);
  row.set_allocated_bytes(count(usage.allocated_bytes()));
  row.set_reserved_bytes(count(usage.reserved_bytes));
  row.set_ready_bytes(count(usage.ready_bytes));
  row.set_ready_allocated_bytes(count(usage.ready_allocated_bytes));
  row.set_retiring_bytes(count(usage.retiring_bytes));
  row.set_quarantined_bytes(count(usage.quarantined_bytes));
  row.set_ready_replicas(count(usage.ready_replicas));
  row.set_reserved_replicas(count(usage.reserved_replicas));
  row.set_retiring_replicas(count(usage.retiring_replicas));
  row.set_quarantined_replicas(count(usage.quarantined_replicas));
  row.set_leased_replicas(count(entry.leased_replicas));
  row.set_pinned_replicas(count(usage.pins));
  row.set_hard_pin_bytes(count(usage.hard_pin_bytes));
  return row;
}

}  // namespace

v1::PoolState state_of(const Directory& directory, const Pool& pool) {
  if (pool.state == PoolState::kGone) return v1::POOL_STATE_GONE;
  const auto* presence = directory.find<Presence>(pool.owner);
  if (!presence || presence->attachment != Attached::kAttached) return v1::POOL_STATE_UNVERIFIED;
  if (presence->silent) return v1::POOL_STATE_SILENT;
  if (pool.state == PoolState::kDraining) return v1::POOL_STATE_DRAINING;
  return pool.state == PoolState::kClosing ? v1::POOL_STATE_CLOSING : v1::POOL_STATE_LIVE;
}

// A client is there as long as the worker that it joined is.
v1::SessionState state_of(const Directory& directory, const Session& session) {
  if (session.ending) return v1::SESSION_STATE_ENDING;
  const SessionId worker = session.role == Role::kWorker ? session.id : session.worker;
  const auto* presence = directory.find<Presence>(worker);
  if (!presence || presence->attachment == Attached::kDetached) return v1::SESSION_STATE_DETACHED;
  if (presence->attachment == Attached::kReattaching) return v1::SESSION_STATE_REATTACHING;
  return presence->silent ? v1::SESSION_STATE_SILENT : v1::SESSION_STATE_ATTACHED;
}

v1::PoolRow pool_row(const ViewContext& context, const PoolEntry& entry) {
  const Pool& pool = entry.pool;
  v1::PoolRow row;
  row.set_pool(pool.id.value());
  *row.mutable_spec() = to_wire(pool.spec);
  row.set_state(state_of(context.directory, pool));
  row.set_draining(pool.state == PoolState::kDraining);
  row.set_owner(pool.owner.value());
  row.set_owner_name(pool.owner_name);
  row.set_node(pool.node);
  *row.mutable_usage() = usage_row(entry);
  if (const auto* report = context.directory.find<PoolReport>(pool.id)) {
    row.set_writing_bytes(report->writing_bytes);
    row.set_free_bytes(report->free_bytes);
    row.set_largest_hole_bytes(report->largest_hole_bytes);
    row.set_spans_out(report->spans_out);
  }
  for (const std::string& importer : pool.importers) row.add_importers(importer);
  for (const PoolExport& e : pool.exports) {
    v1::PoolExport& out = *row.add_exports();
    out.set_worker(e.worker);
    out.set_session(e.importer.value());
    out.set_life_name(e.life_name);
    out.set_imported(e.imported);
    out.set_unsure(e.unsure);
  }
  return row;
}

v1::SessionRow session_row(const ViewContext& context, const Session& session) {
  const Directory& directory = context.directory;
  const SessionUsage usage = directory.session_usage(session.id);
  v1::SessionRow row;
  row.set_session(session.id.value());
  row.set_role(static_cast<v1::Role>(session.role));
  row.set_state(state_of(directory, session));
  row.set_name(session.name);
  row.set_node(session.node);
  row.set_worker(session.worker.value());
  row.set_worker_name(session.worker_name);
  row.set_incarnation(session.incarnation);
  row.set_heartbeat_age_ms(-1);
  const auto* presence = directory.find<Presence>(session.id);
  if (presence && presence->heartbeat_known)
    row.set_heartbeat_age_ms((context.now - presence->heartbeat).millis);
  row.set_operations(count(usage.operations));
  row.set_reservations(count(usage.reservations));
  row.set_leases(count(usage.leases));
  row.set_pools(directory.pools_of(session.id).size());
  row.set_version(session.version);
  return row;
}

v1::NamespaceRow namespace_row(const ViewContext& context, const Namespace& ns) {
  const NamespaceUsage usage = context.directory.namespace_usage(ns.id);
  v1::NamespaceRow row;
  row.set_namespace_id(ns.id.value());
  *row.mutable_spec() = to_wire(ns.spec);
  row.set_fingerprint(bytes_of(ns.fingerprint));
  row.set_quota_bytes(ns.quota_bytes);
  row.set_allocated_bytes(count(usage.allocated_bytes));
  row.set_ready_bytes(count(usage.ready_bytes));
  row.set_replicas(count(usage.replicas));
  return row;
}

v1::ReplicaRow replica_row(const ViewContext& context, const ReplicaSlot& slot) {
  const Replica& replica = slot.replica;
  v1::ReplicaRow row;
  row.set_replica(replica.id.value());
  row.set_namespace_id(replica.key.namespace_number);
  const auto* ns = context.directory.find<Namespace>(replica.key.namespace_id());
  if (ns) row.set_namespace_name(ns->spec.name);
  row.set_digest(digest_of(replica.key, ns));
  row.set_shard(replica.key.shard);
  row.set_part(replica.key.part);
  row.set_pool(replica.pool.value());
  row.set_offset(replica.offset);
  row.set_size_bytes(replica.size_bytes);
  row.set_state(static_cast<v1::ReplicaState>(replica.state));
  row.set_leases(slot.lease_count);
  row.set_reason(std::string(name_of(replica.why)));
  if (const auto* pool = context.directory.find<Pool>(replica.pool)) {
    row.set_pool_name(pool->spec.name);
    const v1::PoolState state = state_of(context.directory, *pool);
    row.set_readable(replica.state == ReplicaState::kReady && state == v1::POOL_STATE_LIVE &&
                     !(ns && replica.id < ns->evicted_below));
  }
  return row;
}

v1::PinRow pin_row(const ViewContext& context, const Pin& pin) {
  v1::PinRow row;
  row.set_replica(pin.replica.value());
  row.set_kind(static_cast<v1::PinKind>(pin.kind));
  const bool ends = pin.kind == PinKind::kSoft;
  row.set_expires_in_ms(ends ? (pin.expires - context.now).millis : -1);
  const auto* replica = context.directory.find<Replica>(pin.replica);
  if (!replica) return row;
  const auto* ns = context.directory.find<Namespace>(replica->key.namespace_id());
  if (ns) row.set_namespace_name(ns->spec.name);
  row.set_digest(digest_of(replica->key, ns));
  row.set_shard(replica->key.shard);
  row.set_part(replica->key.part);
  row.set_pool(replica->pool.value());
  row.set_size_bytes(replica->size_bytes);
  return row;
}

v1::LeaseRow lease_row(const ViewContext& context, const Lease& lease) {
  v1::LeaseRow row;
  row.set_lease(lease.id.value());
  row.set_session(lease.session.value());
  row.set_engine_id(name_of_session(context.directory, lease.session));
  row.set_operation(lease.operation);
  row.set_replicas(lease.replicas.size());
  row.set_age_ms(count((context.now - lease.taken).millis));
  row.set_expires_in_ms((lease.expires - context.now).millis);
  row.set_revoking(lease.revoking);
  return row;
}

v1::ReservationRow reservation_row(const ViewContext& context, const Reservation& reservation) {
  v1::ReservationRow row;
  row.set_first_replica(reservation.first.value());
  row.set_session(reservation.session.value());
  row.set_engine_id(name_of_session(context.directory, reservation.session));
  row.set_operation(reservation.operation);
  row.set_open_items(reservation.items.size());
  uint64_t bytes = 0;
  for (const ReservedItem& item : reservation.items) bytes += item.size_bytes;
  row.set_open_bytes(bytes);
  row.set_due_in_ms((reservation.deadline - context.now).millis);
  row.set_quarantined(reservation.quarantined);
  return row;
}

}  // namespace berth::rpc
