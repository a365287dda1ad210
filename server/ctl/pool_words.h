// The words for what a pool is, shared by every view that shows pools. Nothing where the server
// left a field unset.
#pragma once

#include <string>
#include <vector>

#include "berth/v1/admin.pb.h"
#include "server/ctl/fields.h"

namespace berth::ctl {

Value medium_word(const v1::PoolRow& row);
Value tier_word(const v1::PoolRow& row);
Value scope_word(const v1::PoolRow& row);
Value pool_state_word(const v1::PoolRow& row);
// Workers of the node that import it, one entry each: "w1", "w1 (dead)" while engines of a dead one
// may still map it, "w1 (passed)" before it said so.
std::vector<std::string> pool_importers(const v1::PoolRow& row);

}  // namespace berth::ctl
