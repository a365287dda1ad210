#include "tests/unit/store/store_process.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "server/store/rocksdb_store.h"
#include "tests/unit/store/transitions.h"

namespace berth::testing {

// Hidden: only StoreProcess runs it, in a process of its own that it never leaves alive.
TEST_CASE("the other process: commits until it is killed", "[.child]") {
  const char* directory = std::getenv("BERTH_CHILD_DIRECTORY");
  const char* durability = std::getenv("BERTH_CHILD_DURABILITY");
  const char* tell = std::getenv("BERTH_CHILD_TELL");
  REQUIRE((directory && durability && tell));
  auto store = RocksDbStore::open({.directory = directory,
                                   .durability = static_cast<Durability>(std::atoi(durability)),
                                   .memtable_bytes = 64 << 10});
  if (!store || !(*store)->commit({a_header()}, Time{1}, true)) _exit(1);
  for (uint64_t n = 1;; ++n) {
    if (!(*store)->commit(transition(n), Time{1}, false)) _exit(1);
    if (write(std::atoi(tell), &n, sizeof n) != sizeof n) _exit(1);
  }
}

StoreProcess::StoreProcess(const std::string& directory, Durability durability) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  told_.reset(ends[0]);
  // Before the fork: between fork and exec only system calls are safe.
  setenv("BERTH_CHILD_DIRECTORY", directory.c_str(), 1);
  setenv("BERTH_CHILD_DURABILITY", std::to_string(static_cast<int>(durability)).c_str(), 1);
  setenv("BERTH_CHILD_TELL", std::to_string(ends[1]).c_str(), 1);
  child_ = std::make_unique<ChildProcess>([] {
    execl("/proc/self/exe", "berth-unit-store", "[.child]", nullptr);
    _exit(1);
  });
  close(ends[1]);
}

std::optional<uint64_t> StoreProcess::next_acknowledged() {
  uint64_t number = 0;
  if (read(told_.get(), &number, sizeof number) != sizeof number) return std::nullopt;
  return number;
}

}  // namespace berth::testing
