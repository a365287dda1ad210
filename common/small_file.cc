#include "common/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "common/file_lock.h"
#include "common/os_error.h"
#include "common/text.h"
#include "common/unique_fd.h"

namespace berth {
namespace {

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::string> read_small_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return refuse_os("open " + quote(path));
  std::string content;
  char block[4096];
  for (;;) {
    const ssize_t got = read(file.get(), block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse_os("read " + quote(path));
    if (got == 0) return content;
    content.append(block, static_cast<size_t>(got));
    if (content.size() > kSmallFileBytesMax)
      return refuse(Reason::kIoError, quote(path) + " is larger than 1MiB");
  }
}

Result<> write_small_file(const std::string& path, std::string_view content, mode_t mode) {
  // The pid keeps two processes apart that write the same file.
  const std::string temporary = path + ".new." + std::to_string(getpid());
  UniqueFd file(
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return refuse_os("create " + quote(temporary));
  const bool written = write_all(file.get(), content) && fchmod(file.get(), mode) == 0 &&
                       fsync(file.get()) == 0 && rename(temporary.c_str(), path.c_str()) == 0;
  if (!written) {
    const int code = errno;
    unlink(temporary.c_str());
    return refuse_os("write " + quote(path), code);
  }
  const auto directory = open_directory(directory_of(path));
  if (!directory) return tl::unexpected(directory.error());
  if (fsync(directory->get()) != 0) return refuse_os("sync the directory of " + quote(path));
  return {};
}

}  // namespace berth
