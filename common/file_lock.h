// A lock file taken with flock(2), opened relative to a directory without following links. The lock
// belongs to the open file description: it lives until the last descriptor of it is closed, in
// whatever process that is (fork, dup, SCM_RIGHTS), so it also ends by itself when they all die.
//
// Names can be unlinked and made anew while we wait; a lock counts only while the path still leads
// to the locked file, otherwise two processes could each hold "the" lock.
#pragma once

#include <optional>
#include <string>

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

enum class MissingFile { kCreate, kLeave };
enum class LockOutcome { kTaken, kBusy, kMissing };

struct LockAttempt {
  LockOutcome outcome = LockOutcome::kBusy;
  UniqueFd file;  // kTaken: holds the lock. kBusy: the holder's file, unlocked, for reading
};

// Never waits. `name` is a plain file name. Errors: kInvalidArgument for a name with a slash or a
// special one; kIoError for anything that is not a regular file or cannot be opened.
Result<LockAttempt> attempt_file_lock(int directory, const std::string& name, MissingFile missing);

// Opens a directory to look up names in. Errors: kIoError naming `path`.
Result<UniqueFd> open_directory(const std::string& path);

}  // namespace berth
