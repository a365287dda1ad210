// Tells a torn log from a damaged one, before RocksDB reads it. A crash may cut the newest log
// anywhere: what follows the cut was never acknowledged, and the store opens without it. A break
// with whole records behind it is damage: going on with what lies before it would be a smaller,
// plausible directory, so the store is refused.
//
// RocksDB alone cannot do both: it takes a damaged length in the last block for a cut, and in the
// mode that forgives cuts between logs it also forgives damage.
//
//   [record][record][reco              torn: fine
//   [record][re?ord][record][record]   damaged: refused, naming the file and the place
#pragma once

#include <string>
#include <string_view>

#include "common/error.h"

namespace berth {

// All logs (*.log) of a RocksDB folder, which may be missing; how many there are. Errors:
// kStoreCorrupt; kIoError.
Result<size_t> check_logs(const std::string& folder);

// One log's content; `name` is for the message.
Result<> check_log(const std::string& name, std::string_view content);

}  // namespace berth
