// One record of the directory as one row of a view, with what follows from other records (names,
// states, counts). Pure; the caller holds the view.
#pragma once

#include "server/rpc/views.h"

namespace berth::rpc {

v1::PoolRow pool_row(const ViewContext& context, const PoolEntry& entry);
v1::SessionRow session_row(const ViewContext& context, const Session& session);
v1::NamespaceRow namespace_row(const ViewContext& context, const Namespace& ns);
v1::ReplicaRow replica_row(const ViewContext& context, const ReplicaSlot& slot);
v1::PinRow pin_row(const ViewContext& context, const Pin& pin);
v1::LeaseRow lease_row(const ViewContext& context, const Lease& lease);
v1::ReservationRow reservation_row(const ViewContext& context, const Reservation& reservation);

}  // namespace berth::rpc
