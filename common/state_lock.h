// The lock of a server's state directory: one berthd per directory. It is taken before anything in
// the directory is read or written, and ends with the process, so a stale lock file never blocks a
// start. It is not RocksDB's own LOCK, which is a record lock and would vanish with any close of
// that file.
#pragma once

#include <string>
#include <utility>

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

inline constexpr const char* kStateLockName = "berthd.lock";

class StateLock {
 public:
  // Errors: kIoError when the directory cannot be opened; kStoreLocked naming the directory and the
  // holder: "state directory /var/lib/berth: in use by pid 4711".
  static Result<StateLock> take(const std::string& directory_path);

 private:
  explicit StateLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace berth
