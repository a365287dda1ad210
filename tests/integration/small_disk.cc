#include "tests/integration/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "common/unique_fd.h"

namespace berth::testing {
namespace {

// Mounts of this thread are its own from now on: nothing is left behind if the test is killed.
bool keep_mounts_private() {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

}  // namespace

SmallDisk::SmallDisk(std::string directory, uint64_t bytes) : directory_(std::move(directory)) {
  std::filesystem::create_directory(directory_);
  const std::string options = "size=" + std::to_string(bytes) + ",mode=0700";
  is_mounted_ =
      keep_mounts_private() && mount("tmpfs", directory_.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

SmallDisk::~SmallDisk() {
  if (is_mounted_) umount2(directory_.c_str(), MNT_DETACH);
}

void SmallDisk::fill() {
  if (!is_mounted_) return;
  const UniqueFd file(open(filler().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  REQUIRE(file.valid());
  const std::vector<char> zeros(64 << 10);
  for (size_t chunk = zeros.size(); chunk > 0; chunk /= 2)
    while (write(file.get(), zeros.data(), chunk) > 0) {
    }
}

void SmallDisk::make_room() {
  if (is_mounted_) unlink(filler().c_str());
}

}  // namespace berth::testing
