// The words for what a pool is, shared by every view that shows pools. Nothing where the server
// left a field unset.
#pragma once

#include "berth/v1/admin.pb.h"
#include "server/ctl/fields.h"

namespace berth::ctl {

Value medium_word(const v1::PoolRow& row);
Value tier_word(const v1::PoolRow& row);
Value scope_word(const v1::PoolRow& row);
Value pool_state_word(const v1::PoolRow& row);

}  // namespace berth::ctl
