// Everything but replicas: pools, sessions, namespaces, leases, reservations, pins, jobs, usage.
#include "server/rpc/views.h"

#include <map>
#include <string_view>

#include "server/rpc/fields.h"
#include "server/rpc/rows.h"
#include "server/rpc/translate.h"

namespace berth::rpc {
namespace {

Result<uint32_t> page_rows(uint32_t limit) {
  if (limit == 0) return kPageRowsDefault;
  Fields fields;
  return fields.checked(fields.number32("limit", limit, 1, kPageRowsMax));
}

// Up to `rows` records behind `after`; `add` turns one into a row. Whether there are more.
template <class Table, class Add>
bool add_page(const Table& table, const typename Table::key_type& after, uint32_t rows, Add add) {
  auto it = table.upper_bound(after);
  for (; it != table.end() && rows > 0; ++it, --rows) add(it->second);
  return it != table.end();
}

void add_nodes(const ViewContext& context, v1::GetUsageResponse* response) {
  std::map<std::string, v1::NodeRow> nodes;
  for (const auto& [id, session] : context.directory.sessions()) {
    if (session.role != Role::kWorker) continue;
    v1::NodeRow& node = nodes[session.node];
    if (node.budget_bytes() == 0) node.set_budget_bytes(session.host_memory_bytes);
  }
  for (const auto& [id, entry] : context.directory.pools()) {
    v1::NodeRow& node = nodes[entry.pool.node];
    const uint64_t backing = entry.pool.spec.backing_bytes;
    node.set_backing_bytes(node.backing_bytes() + backing);
    if (entry.pool.state == PoolState::kGone) node.set_gone_bytes(node.gone_bytes() + backing);
    node.set_pools(node.pools() + 1);
  }
  const DirectoryConfig& config = context.config;
  for (auto& [name, node] : nodes) {
    const auto own = config.host_budget_by_node.find(name);
    if (own != config.host_budget_by_node.end())
      node.set_budget_bytes(own->second);
    else if (config.host_budget_bytes != 0)
      node.set_budget_bytes(config.host_budget_bytes);
    node.set_node(name);
    *response->add_nodes() = std::move(node);
  }
}

std::string_view name_of(JobKind kind) {
  switch (kind) {
    case JobKind::kDropPool:
      return "drop_pool";
    case JobKind::kEndSession:
      return "end_session";
    case JobKind::kClosePool:
      return "close_pool";
    case JobKind::kDrainPool:
      return "drain_pool";
    case JobKind::kEvictNamespace:
      return "evict_namespace";
    case JobKind::kTrimPool:
      return "trim_pool";
  }
  return "unknown";
}

int64_t records_left(const Directory& directory, const Job& job) {
  if (job.kind == JobKind::kEndSession) {
    const SessionUsage usage = directory.session_usage(job.session);
    return usage.reservations + usage.leases + usage.operations;
  }
  // READY ones of the namespace are not counted apart: at most so many.
  if (job.kind == JobKind::kEvictNamespace)
    return directory.namespace_usage(job.namespace_id).replicas;
  const PoolEntry* pool = directory.find_pool(job.pool);
  if (!pool) return 0;
  if (job.kind == JobKind::kTrimPool) return pool->usage.ready_replicas;
  return job.kind == JobKind::kClosePool ? pool->usage.ready_replicas : pool->usage.replicas();
}

}  // namespace

Result<> list(const ViewContext& context, const v1::ListPoolsRequest& request,
              v1::ListPoolsResponse* response) {
  const auto rows = page_rows(request.limit());
  if (!rows) return tl::unexpected(rows.error());
  response->set_more(
      add_page(context.directory.pools(), PoolId(request.after()), *rows,
               [&](const PoolEntry& entry) { *response->add_pools() = pool_row(context, entry); }));
  return {};
}

Result<> list(const ViewContext& context, const v1::ListSessionsRequest& request,
              v1::ListSessionsResponse* response) {
  const auto rows = page_rows(request.limit());
  if (!rows) return tl::unexpected(rows.error());
  response->set_more(add_page(
      context.directory.sessions(), SessionId(request.after()), *rows,
      [&](const Session& session) { *response->add_sessions() = session_row(context, session); }));
  return {};
}

Result<> list(const ViewContext& context, const v1::ListNamespacesRequest& request,
              v1::ListNamespacesResponse* response) {
  const auto rows = page_rows(request.limit());
  if (!rows) return tl::unexpected(rows.error());
  response->set_more(add_page(
      context.directory.namespaces(), NamespaceId(request.after()), *rows,
      [&](const Namespace& ns) { *response->add_namespaces() = namespace_row(context, ns); }));
  return {};
}

Result<> list(const ViewContext& context, const v1::ListLeasesRequest& request,
              v1::ListLeasesResponse* response) {
  const auto rows = page_rows(request.limit());
  if (!rows) return tl::unexpected(rows.error());
  const LeaseId after(request.after());
  if (request.session() == 0) {
    response->set_more(add_page(context.directory.leases(), after, *rows, [&](const Lease& lease) {
      *response->add_leases() = lease_row(context, lease);
    }));
    return {};
  }
  const SessionId session(request.session());
  const auto& index = context.directory.leases_by_session();
  auto it = index.upper_bound({session, after});
  for (uint32_t left = *rows; it != index.end() && it->first == session && left > 0; ++it, --left)
    if (const auto* lease = context.directory.find<Lease>(it->second))
      *response->add_leases() = lease_row(context, *lease);
  response->set_more(it != index.end() && it->first == session);
  return {};
}

Result<> list(const ViewContext& context, const v1::ListReservationsRequest& request,
              v1::ListReservationsResponse* response) {
  const auto rows = page_rows(request.limit());
  if (!rows) return tl::unexpected(rows.error());
  response->set_more(add_page(context.directory.reservations(), ReplicaId(request.after()), *rows,
                              [&](const Reservation& reservation) {
                                *response->add_reservations() =
                                    reservation_row(context, reservation);
                              }));
  return {};
}

Result<> list(const ViewContext& context, const v1::ListPinsRequest& request,
              v1::ListPinsResponse* response) {
  const auto rows = page_rows(request.limit());
  if (!rows) return tl::unexpected(rows.error());
  response->set_more(
      add_page(context.directory.pins(), ReplicaId(request.after()), *rows,
               [&](const Pin& pin) { *response->add_pins() = pin_row(context, pin); }));
  return {};
}

// Jobs are few: one for each session, pool or namespace that is ending or being emptied.
void list(const ViewContext& context, v1::ListJobsResponse* response) {
  for (const auto& [id, job] : context.directory.jobs()) {
    v1::JobRow& row = *response->add_jobs();
    row.set_job(id.value());
    row.set_kind(std::string(name_of(job.kind)));
    row.set_pool(job.pool.value());
    row.set_session(job.session.value());
    row.set_namespace_id(job.namespace_id.value());
    row.set_done(job.done);
    row.set_left(static_cast<uint64_t>(records_left(context.directory, job)));
  }
}

void fill(v1::GetUsageResponse* response, const ViewContext& context) {
  for (const auto& [id, entry] : context.directory.pools())
    *response->add_pools() = pool_row(context, entry);
  add_nodes(context, response);
  for (const auto& [id, ns] : context.directory.namespaces())
    *response->add_namespaces() = namespace_row(context, ns);
}

void fill(v1::GetStatusResponse* response, const ViewContext& context) {
  const Directory& directory = context.directory;
  fill(response->mutable_store(), directory);
  response->set_objects(directory.replicas().object_count());
  response->set_replicas(directory.replicas().size());
  response->set_leases(directory.leases().size());
  response->set_reservations(directory.reservations().size());
  response->set_sessions(directory.sessions().size());
  response->set_pools(directory.pools().size());
  response->set_namespaces(directory.namespaces().size());
  response->set_jobs(directory.jobs().size());
  uint64_t workers = 0;
  uint64_t attached = 0;
  for (const auto& [id, session] : directory.sessions()) {
    if (session.role != Role::kWorker) continue;
    ++workers;
    attached += state_of(directory, session) == v1::SESSION_STATE_ATTACHED;
  }
  response->set_workers_known(workers);
  response->set_workers_attached(attached);
  response->set_clients(directory.sessions().size() - workers);
  int64_t quarantined = 0;
  for (const auto& [id, entry] : directory.pools()) quarantined += entry.usage.quarantined_bytes;
  response->set_quarantined_bytes(static_cast<uint64_t>(quarantined));
}

}  // namespace berth::rpc
