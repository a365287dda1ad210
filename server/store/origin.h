// How a store knows that it is at home. The file "origin" in the state directory is made once; its
// inode and birth time are kept in the store's header. Whoever copies the directory, or restores it
// from a backup, gets a file with another birth time. The device number is left out, because it
// changes when disks are found in another order.
//
// A clone of the whole block device cannot be told from the original; docs/operations.md says what
// to do then.
#pragma once

#include <optional>
#include <string>

#include "common/error.h"
#include "server/store/codec.h"

namespace berth {

inline constexpr const char* kOriginName = "origin";

// The origin of this directory as it is; nothing when it has none. Errors: kIoError.
Result<std::optional<Origin>> read_origin(const std::string& directory);

// Makes the file when it is missing. Errors: kIoError.
Result<Origin> ensure_origin(const std::string& directory);

}  // namespace berth
