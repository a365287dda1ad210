#include "server/store/origin.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "common/os_error.h"
#include "common/small_file.h"

namespace berth {
namespace {

constexpr std::string_view kText =
    "Made with this store and never copied with it: berthd gives a copied or restored store a new "
    "id.\n";

}  // namespace

Result<std::optional<Origin>> read_origin(const std::string& directory) {
  const std::string path = directory + "/" + kOriginName;
  struct statx found {};
  if (statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &found) != 0) {
    if (errno == ENOENT) return std::nullopt;
    return refuse_os("look at " + path);
  }
  Origin origin;
  origin.inode = found.stx_ino;
  // A file system without birth times leaves it zero; then the inode alone has to do.
  if (found.stx_mask & STATX_BTIME)
    origin.born_nanos =
        static_cast<uint64_t>(found.stx_btime.tv_sec) * 1'000'000'000 + found.stx_btime.tv_nsec;
  return origin;
}

Result<Origin> ensure_origin(const std::string& directory) {
  Result<std::optional<Origin>> found = read_origin(directory);
  if (found && !*found) {
    if (auto written = write_small_file(directory + "/" + kOriginName, kText); !written)
      return tl::unexpected(written.error());
    found = read_origin(directory);
  }
  if (!found) return tl::unexpected(found.error());
  if (!*found)
    return refuse(Reason::kIoError, directory + "/" + kOriginName + ": vanished while it was made");
  return **found;
}

}  // namespace berth
