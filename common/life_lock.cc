#include "common/life_lock.h"

#include <unistd.h>

#include "common/file_lock.h"

namespace berth {

Result<std::optional<LifeLock>> LifeLock::take(int directory, const std::string& name) {
  auto attempt = attempt_file_lock(directory, name, MissingFile::kCreate);
  if (!attempt) return tl::unexpected(attempt.error());
  if (attempt->outcome != LockOutcome::kTaken) return std::nullopt;
  return LifeLock(std::move(attempt->file), name);
}

void LifeLock::remove(int directory) {
  if (!file_) return;
  unlinkat(directory, name_.c_str(), 0);
  file_.reset();
}

Result<Life> test_life(int directory, const std::string& name, ProvenDead then) {
  auto attempt = attempt_file_lock(directory, name, MissingFile::kLeave);
  if (!attempt) return tl::unexpected(attempt.error());
  if (attempt->outcome == LockOutcome::kBusy) return Life::kAlive;
  if (attempt->outcome == LockOutcome::kTaken && then == ProvenDead::kRemoveFile)
    unlinkat(directory, name.c_str(), 0);
  return Life::kDead;
}

}  // namespace berth
