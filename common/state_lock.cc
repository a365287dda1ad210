#include "common/state_lock.h"

#include <unistd.h>

#include "common/file_lock.h"
#include "common/os_error.h"

namespace berth {
namespace {

// The holder writes its pid just after it got the lock, so a reader may come too early or find what
// an earlier holder left. It is a hint for people; only the lock decides.
std::string holder_of(int file) {
  char text[32] = {};
  const ssize_t length = pread(file, text, sizeof text - 1, 0);
  const std::string digits(text, length > 0 ? static_cast<size_t>(length) : 0);
  const size_t end = digits.find_first_not_of("0123456789");
  if (end == 0 || digits.empty()) return "another process";
  return "pid " + digits.substr(0, end);
}

// Returns 0 or what the kernel said.
int write_pid(int file) {
  const std::string text = std::to_string(getpid()) + "\n";
  const bool written = ftruncate(file, 0) == 0 && pwrite(file, text.data(), text.size(), 0) ==
                                                      static_cast<ssize_t>(text.size());
  return written ? 0 : errno;
}

}  // namespace

Result<StateLock> StateLock::take(const std::string& directory_path) {
  const auto directory = open_directory(directory_path);
  if (!directory) return tl::unexpected(directory.error());
  auto attempt = attempt_file_lock(directory->get(), kStateLockName, MissingFile::kCreate);
  if (!attempt)
    return refuse(attempt.error().reason,
                  "state directory " + directory_path + ": " + attempt.error().message);
  if (attempt->outcome != LockOutcome::kTaken)
    return refuse(Reason::kStoreLocked, "state directory " + directory_path + ": in use by " +
                                            holder_of(attempt->file.get()));
  // A full disk must not keep the server from starting: the lock holds without the number.
  const int failed = write_pid(attempt->file.get());
  if (failed != 0 && failed != ENOSPC)
    return refuse_os("write " + directory_path + "/" + kStateLockName, failed);
  return StateLock(std::move(attempt->file));
}

}  // namespace berth
