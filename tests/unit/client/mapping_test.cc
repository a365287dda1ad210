// Pool mappings and the order in which a join's memory goes away.
#include "worker/client/mapping.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <memory>

namespace berth::client {
namespace {

constexpr uint64_t kPoolBytes = 64 << 10;

UniqueFd make_memory(uint64_t size_bytes) {
  UniqueFd fd(::memfd_create("berth-test-pool", MFD_CLOEXEC));
  REQUIRE(fd.valid());
  REQUIRE(::ftruncate(fd.get(), static_cast<off_t>(size_bytes)) == 0);
  return fd;
}

// A locked life file, and a second description of it that can test the lock.
struct LifeFile {
  LifeFile() {
    char path[] = "/tmp/berth-life-XXXXXX";
    held.reset(::mkostemp(path, O_CLOEXEC));
    tester.reset(::open(path, O_RDWR | O_CLOEXEC));
    ::unlink(path);
    REQUIRE(::flock(held.get(), LOCK_EX | LOCK_NB) == 0);
  }
  bool is_free() const {
    const bool taken = ::flock(tester.get(), LOCK_EX | LOCK_NB) == 0;
    if (taken) ::flock(tester.get(), LOCK_UN);
    return taken;
  }
  UniqueFd held;
  UniqueFd tester;
};

PoolMaps map_one(LifeDescriptor life, const UniqueFd& memory, bool writable) {
  const std::vector<PoolAnnouncement> pools{{PoolId(3), "cpu", kPoolBytes, writable}};
  std::vector<UniqueFd> descriptors;
  descriptors.emplace_back(::dup(memory.get()));
  auto maps = PoolMaps::map(std::move(life), pools, descriptors);
  REQUIRE(maps);
  return std::move(*maps);
}

TEST_CASE("bytes written through a mapping are the pool's bytes", "[client][mapping]") {
  const UniqueFd memory = make_memory(kPoolBytes);
  const PoolMaps maps = map_one(nullptr, memory, true);
  const std::span<std::byte> run = maps.writable(PoolId(3), 4096, 5);
  REQUIRE(run.size() == 5);
  std::memcpy(run.data(), "berth", 5);
  char seen[5];
  REQUIRE(::pread(memory.get(), seen, 5, 4096) == 5);
  CHECK(std::memcmp(seen, "berth", 5) == 0);
}

TEST_CASE("a run outside of its pool, or in another pool, resolves to nothing",
          "[client][mapping]") {
  const UniqueFd memory = make_memory(kPoolBytes);
  const PoolMaps maps = map_one(nullptr, memory, true);
  CHECK(maps.readable(PoolId(3), 0, kPoolBytes).size() == kPoolBytes);
  CHECK(maps.readable(PoolId(3), 1, kPoolBytes).empty());
  CHECK(maps.readable(PoolId(3), kPoolBytes + 1, 1).empty());
  CHECK(maps.readable(PoolId(3), ~uint64_t{0}, 4096).empty());
  CHECK(maps.readable(PoolId(3), 4096, ~uint64_t{0}).empty());
  CHECK(maps.readable(PoolId(4), 0, 1).empty());
}

TEST_CASE("a pool that may not be written gives no writable run", "[client][mapping]") {
  const UniqueFd memory = make_memory(kPoolBytes);
  const PoolMaps maps = map_one(nullptr, memory, false);
  CHECK(maps.writable(PoolId(3), 0, 16).empty());
  CHECK(maps.readable(PoolId(3), 0, 16).size() == 16);
}

TEST_CASE("the life lock is held as long as somebody holds the mapping", "[client][mapping]") {
  LifeFile life;
  const UniqueFd memory = make_memory(kPoolBytes);
  auto of_join = std::make_shared<PoolMaps>(
      map_one(std::make_shared<const UniqueFd>(std::move(life.held)), memory, true));
  std::shared_ptr<PoolMaps> of_handle = of_join;
  const std::span<const std::byte> read = of_handle->readable(PoolId(3), 0, 16);
  of_join.reset();
  CHECK_FALSE(life.is_free());
  CHECK(read[0] == std::byte{0});  // still mapped: would fault otherwise
  of_handle.reset();
  CHECK(life.is_free());
}

TEST_CASE("a pool of another worker comes and goes without touching the rest",
          "[client][mapping]") {
  LifeFile life;
  const UniqueFd memory = make_memory(kPoolBytes);
  const UniqueFd others = make_memory(kPoolBytes);
  REQUIRE(::pwrite(others.get(), "w1", 2, 0) == 2);
  auto first = std::make_shared<const PoolMaps>(map_one(nullptr, memory, true));
  const std::byte* own = first->readable(PoolId(3), 0, 16).data();

  auto imported = PoolMapping::map_imported({PoolId(9), "cpu", kPoolBytes, false}, others.get(),
                                            std::move(life.held));
  REQUIRE(imported);
  auto second = std::make_shared<const PoolMaps>(first->with(std::move(*imported)));
  CHECK(first->readable(PoolId(9), 0, 2).empty());
  REQUIRE(second->readable(PoolId(9), 0, 2).size() == 2);
  CHECK(std::memcmp(second->readable(PoolId(9), 0, 2).data(), "w1", 2) == 0);
  CHECK(second->writable(PoolId(9), 0, 2).empty());
  CHECK(second->readable(PoolId(3), 0, 16).data() == own);
  first.reset();
  const auto of_handle = second;
  auto third = std::make_shared<const PoolMaps>(second->without(PoolId(9)));
  second.reset();
  CHECK(third->readable(PoolId(9), 0, 2).empty());
  CHECK(third->readable(PoolId(3), 0, 16).data() == own);
  CHECK_FALSE(life.is_free());  // a handle reads from it
  CHECK(of_handle->readable(PoolId(9), 0, 2).size() == 2);
}

TEST_CASE("the lock of another worker's pool is free once the last handle let go of it",
          "[client][mapping]") {
  LifeFile life;
  const UniqueFd memory = make_memory(kPoolBytes);
  auto imported = PoolMapping::map_imported({PoolId(9), "cpu", kPoolBytes, false}, memory.get(),
                                            std::move(life.held));
  REQUIRE(imported);
  auto maps =
      std::make_shared<const PoolMaps>(map_one(nullptr, memory, true).with(std::move(*imported)));
  auto of_handle = maps;
  maps = std::make_shared<const PoolMaps>(maps->without(PoolId(9)));
  CHECK_FALSE(life.is_free());
  of_handle.reset();
  CHECK(life.is_free());
}

TEST_CASE("a forked child has no mapping of the pool", "[client][mapping]") {
  const UniqueFd memory = make_memory(kPoolBytes);
  const PoolMaps maps = map_one(nullptr, memory, true);
  void* address = maps.writable(PoolId(3), 0, 1).data();
  const pid_t child = ::fork();
  if (child == 0) {
    unsigned char resident;
    // Not _exit(): ThreadSanitizer would take the parent's thread that fills the page table, which
    // the child does not have, for one that the child has forgotten.
    ::syscall(SYS_exit_group, ::mincore(address, 1, &resident) == 0 ? 1 : 0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a pool whose descriptor cannot be mapped is an error that names it",
          "[client][mapping]") {
  const std::vector<PoolAnnouncement> pools{{PoolId(3), "cpu-0", kPoolBytes, true}};
  std::vector<UniqueFd> descriptors(1);
  const auto maps = PoolMaps::map(nullptr, pools, descriptors);
  REQUIRE_FALSE(maps);
  CHECK(maps.error().reason == Reason::kIoError);
  CHECK(maps.error().message.find("cpu-0") != std::string::npos);
}

}  // namespace
}  // namespace berth::client
