// Kernel facts, real and from a made-up tree; small files; chance; stop signals.
#include "common/host_facts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/names.h"
#include "common/random.h"
#include "common/signals.h"
#include "common/small_file.h"
#include "tests/unit/common/child_process.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

struct FakeHost {
  testing::TemporaryDirectory directory;
  HostRoot root{directory.path() + "/proc", directory.path() + "/cgroup"};

  FakeHost() {
    put("proc/meminfo",
        "MemTotal:       16777216 kB\nMemFree: 1 kB\nMemAvailable:    8388608 kB\n");
    put("proc/self/cgroup", "0::/\n");
  }
  void put(const std::string& path, const std::string& content) const {
    const std::filesystem::path file = directory.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
};

constexpr uint64_t kGiB = uint64_t{1} << 30;

}  // namespace

TEST_CASE("this host has a boot id, a usable name and memory", "[common][host]") {
  const auto boot = read_boot_id();
  REQUIRE(boot.has_value());
  CHECK(boot->valid());
  CHECK(read_boot_id() == boot);
  const auto name = read_host_name();
  REQUIRE(name.has_value());
  CHECK(validate_name("node", *name).has_value());
  const auto memory = read_host_memory();
  REQUIRE(memory.has_value());
  CHECK(memory->total_bytes >= memory->available_bytes);
  CHECK(memory->usable_bytes() > 0);
}

TEST_CASE("a boot id is read from the kernel's UUID", "[common][host]") {
  const FakeHost host;
  host.put("proc/sys/kernel/random/boot_id", "01234567-89ab-cdef-fedc-ba9876543210\n");
  CHECK(read_boot_id(host.root) == BootId{0x0123456789abcdef, 0xfedcba9876543210});
  host.put("proc/sys/kernel/random/boot_id", "not a uuid\n");
  CHECK_FALSE(read_boot_id(host.root).has_value());
}

TEST_CASE("without a cgroup limit all memory is usable", "[common][host]") {
  const FakeHost host;
  const auto memory = read_host_memory(host.root);
  REQUIRE(memory.has_value());
  CHECK(memory->total_bytes == 16 * kGiB);
  CHECK(memory->available_bytes == 8 * kGiB);
  CHECK_FALSE(memory->cgroup_limit_bytes.has_value());
  CHECK(memory->usable_bytes() == 16 * kGiB);
}

TEST_CASE("the lowest limit on the way up a v2 cgroup counts", "[common][host]") {
  const FakeHost host;
  host.put("proc/self/cgroup", "0::/system.slice/berthd.service\n");
  host.put("cgroup/system.slice/berthd.service/memory.max", "max\n");
  host.put("cgroup/system.slice/memory.max", "4294967296\n");
  CHECK(read_host_memory(host.root)->usable_bytes() == 4 * kGiB);
  host.put("cgroup/system.slice/berthd.service/memory.max", "1073741824\n");
  CHECK(read_host_memory(host.root)->usable_bytes() == 1 * kGiB);
}

TEST_CASE("a v1 memory cgroup counts, and its number for unlimited does not", "[common][host]") {
  const FakeHost host;
  host.put("proc/self/cgroup", "9:cpu:/x\n8:memory:/docker/abc\n0::/ignored\n");
  host.put("cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(read_host_memory(host.root)->cgroup_limit_bytes.has_value());
  host.put("cgroup/memory/docker/abc/memory.limit_in_bytes", "2147483648\n");
  CHECK(read_host_memory(host.root)->cgroup_limit_bytes == 2 * kGiB);
}

TEST_CASE("in a container the limit is found at the root of what is visible", "[common][host]") {
  const FakeHost host;
  host.put("proc/self/cgroup", "8:memory:/not/visible/here\n");
  host.put("cgroup/memory/memory.limit_in_bytes", "3221225472\n");
  CHECK(read_host_memory(host.root)->cgroup_limit_bytes == 3 * kGiB);
}

TEST_CASE("a broken meminfo is an error and not zero bytes", "[common][host]") {
  const FakeHost host;
  host.put("proc/meminfo", "MemTotal: x\n");
  CHECK_FALSE(read_host_memory(host.root).has_value());
}

TEST_CASE("the open-files limit is raised to the hard limit", "[common][host]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(raise_open_files_limit() == before.rlim_max);
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == before.rlim_max);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("the locked-memory limit is what the kernel enforces", "[common][host]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  const auto limit = locked_memory_limit_bytes();
  if (before.rlim_cur == RLIM_INFINITY) {
    CHECK_FALSE(limit.has_value());
  } else {
    CHECK(limit == before.rlim_cur);
  }
}

TEST_CASE("random ids are valid and differ", "[common][random]") {
  const Id128 first = random_id128();
  CHECK(first.valid());
  CHECK(random_id128() != first);
  CHECK(random_seed() != random_seed());
}

TEST_CASE("a small file is written whole, with its mode, and leaves no temporary file",
          "[common][small_file]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/identity";
  REQUIRE(write_small_file(path, "one", 0640).has_value());
  REQUIRE(write_small_file(path, "two\n", 0640).has_value());
  CHECK(read_small_file(path).value() == "two\n");
  struct stat facts {};
  REQUIRE(stat(path.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0640);
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory.path()))
    ++files;
  CHECK(files == 1);
}

TEST_CASE("a small file that cannot be written keeps its old content", "[common][small_file]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/taken";
  std::filesystem::create_directories(path + "/child");
  CHECK_FALSE(write_small_file(path, "x").has_value());
  CHECK(std::filesystem::exists(path + "/child"));
  CHECK_FALSE(write_small_file(directory.path() + "/none/file", "x").has_value());
}

TEST_CASE("reading a small file refuses a missing or a huge one by name", "[common][small_file]") {
  const testing::TemporaryDirectory directory;
  CHECK(read_small_file(directory.path() + "/none").error().message ==
        "cannot open \"" + directory.path() + "/none\": No such file or directory");
  CHECK_FALSE(read_small_file("/dev/zero").has_value());
}

TEST_CASE("a blocked stop signal arrives at the descriptor and not as death", "[common][signals]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const auto signals = block_stop_signals();
    if (!signals || take_stop_signal(signals->get()) != 0) _exit(1);
    kill(getpid(), SIGTERM);
    pollfd entry{signals->get(), POLLIN, 0};
    if (poll(&entry, 1, -1) != 1) _exit(2);
    _exit(take_stop_signal(signals->get()) == SIGTERM ? 0 : 3);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace berth
