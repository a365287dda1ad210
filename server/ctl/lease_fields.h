// The columns of leases and reservations, shared by their lists and by `objects inspect`.
// Made at the first call and kept for the life of the process.
#pragma once

#include "berth/v1/admin.pb.h"
#include "server/ctl/fields.h"

namespace berth::ctl {

const std::vector<Field<v1::LeaseRow>>& lease_fields();
const std::vector<Field<v1::ReservationRow>>& reservation_fields();

}  // namespace berth::ctl
