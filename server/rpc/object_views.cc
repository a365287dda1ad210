// Replicas: the one table that is too long for one hold of the view.
#include <algorithm>
#include <set>
#include <string_view>

#include "common/text.h"
#include "server/rpc/fields.h"
#include "server/rpc/rows.h"
#include "server/rpc/views.h"

namespace berth::rpc {

Result<const Namespace*> namespace_named(const Directory& directory, const std::string& name) {
  if (const Namespace* found = directory.namespace_by_name(name)) return found;
  return refuse(Reason::kUnknownNamespace,
                "namespace_name = " + quote(name) + ": no such namespace");
}

namespace {

bool matches(const Replica& replica, const v1::ListObjectsRequest& request,
             NamespaceId namespace_filter) {
  if (namespace_filter.valid() && replica.key.namespace_id() != namespace_filter) return false;
  if (request.pool() != 0 && replica.pool.value() != request.pool()) return false;
  if (request.state() != 0 && static_cast<int>(replica.state) != request.state()) return false;
  const std::string& prefix = request.digest_prefix();
  const auto& digest = replica.key.digest.bytes;
  return std::equal(prefix.begin(), prefix.end(), digest.begin(),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

void add_copies(const ViewContext& context, const ObjectKey& key,
                v1::InspectObjectResponse* response) {
  const ReplicaTable& table = context.directory.replicas();
  for (uint32_t slot = table.first_slot_of(key); slot != ReplicaTable::kNone;
       slot = table.at(slot).next_same_key) {
    // A chunk of a thousand shards and parts would not fit into one message.
    if (response->replicas_size() >= static_cast<int>(kPageRowsMax)) return;
    *response->add_replicas() = replica_row(context, table.at(slot));
  }
}

void add_reservations(const ViewContext& context, v1::InspectObjectResponse* response) {
  const auto& reservations = context.directory.reservations();
  std::set<ReplicaId> added;
  for (const v1::ReplicaRow& row : response->replicas()) {
    auto it = reservations.upper_bound(ReplicaId(row.replica()));
    if (it == reservations.begin()) continue;
    const Reservation& reservation = std::prev(it)->second;
    const bool is_item = row.replica() < reservation.first.value() + reservation.granted;
    if (is_item && added.insert(reservation.first).second)
      *response->add_reservations() = reservation_row(context, reservation);
  }
}

}  // namespace

Result<ObjectScan> begin_scan(const ViewContext& context, const v1::ListObjectsRequest& request) {
  ObjectScan scan;
  Fields fields;
  scan.slot = static_cast<uint32_t>(fields.number("after", request.after(), 0, UINT32_MAX));
  scan.rows_left = request.limit() == 0
                       ? kPageRowsDefault
                       : fields.number32("limit", request.limit(), 1, kPageRowsMax);
  if (request.state() != 0) fields.choice("state", request.state(), ReplicaState::kQuarantined);
  if (request.digest_prefix().size() > kDigestBytesMax)
    fields.refuse("digest_prefix", std::to_string(request.digest_prefix().size()) + " bytes",
                  "is too long", "at most 32 bytes");
  scan.namespace_filter = NamespaceId(request.namespace_id());
  if (!request.namespace_name().empty() && !fields.failed()) {
    const auto ns = namespace_named(context.directory, request.namespace_name());
    if (!ns) return tl::unexpected(ns.error());
    scan.namespace_filter = (*ns)->id;
  }
  return fields.checked(scan);
}

void scan_slice(const ViewContext& context, const v1::ListObjectsRequest& request, ObjectScan& scan,
                v1::ListObjectsResponse* response) {
  const ReplicaTable& table = context.directory.replicas();
  for (uint32_t i = 0; i < kSliceSlotsMax && !scan.is_over(context.directory); ++i) {
    const ReplicaSlot& slot = table.at(scan.slot++);
    --scan.slots_left;
    if (!slot.replica.id.valid() || !matches(slot.replica, request, scan.namespace_filter))
      continue;
    *response->add_replicas() = replica_row(context, slot);
    --scan.rows_left;
  }
  response->set_more(scan.slot < table.slot_limit());
  response->set_next_after(scan.slot);
}

Result<> inspect(const ViewContext& context, const v1::InspectObjectRequest& request,
                 v1::InspectObjectResponse* response) {
  if (request.replica() != 0) {
    const auto* replica = context.directory.find<Replica>(ReplicaId(request.replica()));
    if (!replica)
      return refuse(Reason::kUnknownReplica,
                    "replica = " + id_text(request.replica()) + ": no such replica");
    add_copies(context, replica->key, response);
  } else {
    if (request.namespace_name().empty())
      return refuse(
          Reason::kInvalidArgument,
          "replica = 0: is missing; accepted: a replica id, or namespace_name and digest");
    const auto ns = namespace_named(context.directory, request.namespace_name());
    if (!ns) return tl::unexpected(ns.error());
    const NamespaceSpec& spec = (*ns)->spec;
    Fields fields;
    const auto digests = fields.digests("digest", request.digest(), spec.digest_bytes, 1);
    if (fields.failed()) return fields.checked(0).map([](int) {});
    for (uint32_t shard = 0; shard < spec.shards; ++shard)
      for (uint32_t part = 0; part < spec.parts; ++part)
        add_copies(context, key_of(**ns, digests[0], shard, part), response);
  }
  add_reservations(context, response);
  return {};
}

LeaseId find_leases_slice(const ViewContext& context, LeaseId after,
                          v1::InspectObjectResponse* response) {
  std::set<ReplicaId> wanted;
  for (const v1::ReplicaRow& row : response->replicas())
    if (row.leases() > 0) wanted.insert(ReplicaId(row.replica()));
  if (wanted.empty()) return LeaseId();
  const auto& leases = context.directory.leases();
  auto it = leases.upper_bound(after);
  for (size_t i = 0; i < kSliceLeasesMax && it != leases.end(); ++i, ++it) {
    after = it->first;
    const auto& replicas = it->second.replicas;
    if (std::any_of(replicas.begin(), replicas.end(),
                    [&](ReplicaId id) { return wanted.count(id); }))
      *response->add_leases() = lease_row(context, it->second);
  }
  return it == leases.end() ? LeaseId() : after;
}

}  // namespace berth::rpc
