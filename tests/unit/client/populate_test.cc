// What a page table holds before anybody touched a page.
#include "worker/client/populate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "common/unique_fd.h"

namespace berth::client {
namespace {

constexpr size_t kBytes = size_t{1} << 20;

// A shared mapping of memory that exists, as an engine maps a pool.
class Mapping {
 public:
  Mapping() : fd_(::memfd_create("berth-test-pool", MFD_CLOEXEC)) {
    REQUIRE(::ftruncate(fd_.get(), kBytes) == 0);
    REQUIRE(::fallocate(fd_.get(), 0, 0, kBytes) == 0);
    memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    REQUIRE(memory_ != MAP_FAILED);
  }
  ~Mapping() { ::munmap(memory_, kBytes); }

  std::span<std::byte> memory() const { return {static_cast<std::byte*>(memory_), kBytes}; }
  // Pages of it that this process could touch without a fault.
  size_t resident_bytes() const {
    std::ostringstream start;
    start << std::hex << reinterpret_cast<uintptr_t>(memory_) << '-';
    std::ifstream file("/proc/self/smaps");
    bool is_ours = false;
    for (std::string line; std::getline(file, line);) {
      if (line.find("berth-test-pool") != std::string::npos) is_ours = line.find(start.str()) == 0;
      if (is_ours && line.starts_with("Rss:")) return std::stoul(line.substr(4)) << 10;
    }
    FAIL("the mapping is not in /proc/self/smaps");
    return 0;
  }

 private:
  UniqueFd fd_;
  void* memory_ = nullptr;
};

bool kernel_can_populate(const Mapping& mapping) {
  constexpr int kPopulateRead = 22;
  return ::madvise(mapping.memory().data(), 4096, kPopulateRead) == 0;
}

}  // namespace

TEST_CASE("a mapping is in the page table before anybody touches it", "[client][mapping]") {
  const Mapping mapping;
  if (!kernel_can_populate(mapping)) {
    WARN("this kernel cannot fill page tables ahead");
    return;
  }
  REQUIRE(mapping.resident_bytes() < kBytes);
  Populating populating(mapping.memory());
  populating.wait();
  CHECK(mapping.resident_bytes() == kBytes);
}

TEST_CASE("filling a page table ends with its object, and memory that is gone stops it",
          "[client][mapping]") {
  { const Populating nothing{{}}; }
  void* gone = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(gone != MAP_FAILED);
  REQUIRE(::munmap(gone, kBytes) == 0);
  Populating populating({static_cast<std::byte*>(gone), kBytes});
  populating.wait();
  SUCCEED("it ended");
}

}  // namespace berth::client
