#include "common/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <utility>

#include "common/os_error.h"
#include "common/text.h"

namespace berth {
namespace {

// How often a path may be replaced under us before we call it an error.
constexpr int kReplacedTriesMax = 100;

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether `name` still leads to the file behind `fd`.
bool leads_to(int directory, const std::string& name, int fd) {
  struct stat by_fd {};
  struct stat by_name {};
  return fstat(fd, &by_fd) == 0 &&
         fstatat(directory, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
         is_same_file(by_fd, by_name);
}

}  // namespace

Result<UniqueFd> open_directory(const std::string& path) {
  UniqueFd directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return refuse_os("open directory " + quote(path));
  return directory;
}

Result<LockAttempt> attempt_file_lock(int directory, const std::string& name, MissingFile missing) {
  if (!is_plain_name(name))
    return refuse(Reason::kInvalidArgument,
                  name_and_value("lock file", name) + ": not a plain file name");
  // O_NONBLOCK: opening a FIFO that somebody planted here must not hang.
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK |
                    (missing == MissingFile::kCreate ? O_CREAT : 0);
  for (int i = 0; i < kReplacedTriesMax; ++i) {
    UniqueFd file(openat(directory, name.c_str(), flags, 0600));
    if (!file && errno == ENOENT && missing == MissingFile::kLeave)
      return LockAttempt{LockOutcome::kMissing, UniqueFd()};
    if (!file) return refuse_os("open lock file " + quote(name));
    struct stat facts {};
    if (fstat(file.get(), &facts) != 0) return refuse_os("examine lock file " + quote(name));
    if (!S_ISREG(facts.st_mode))
      return refuse(Reason::kIoError, "lock file " + quote(name) + " is not a regular file");
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return refuse_os("lock " + quote(name));
      return LockAttempt{LockOutcome::kBusy, std::move(file)};
    }
    if (leads_to(directory, name, file.get()))
      return LockAttempt{LockOutcome::kTaken, std::move(file)};
  }
  return refuse(Reason::kIoError, "lock file " + quote(name) + " is replaced again and again");
}

}  // namespace berth
