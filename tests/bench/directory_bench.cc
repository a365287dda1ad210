// berth-bench-directory: what a million objects cost the server in memory, and how long a restart
// over them takes.
//
// Workload: one worker with one large pool, one client; objects of one replica each are reserved
// and committed in batches, through the same decide / commit / install as in berthd, into a real
// store in a fresh directory; operation answers are forgotten as a well-behaved client lets them.
// Nothing else runs in the process.
//
// Memory is the growth of the process's resident set from just before the first object to just
// after the last, RocksDB's memtables and caches included. Baseline in the same run: the bytes of
// one object's bare facts (key, place, size, state) in a std::unordered_map, the obvious in-memory
// registry, filled with the same keys.
//
// Restart is opening the store, reading every record, checking every invariant and raising the
// epoch: until then berthd does not serve. Baseline in the same run: reading the bytes of the state
// directory back once.
//
//   berth-bench-directory [--objects N] [--batch N] [--directory DIR] [--json]
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "server/rpc/resident_memory.h"
#include "server/store/rocksdb_store.h"
#include "tests/bench/core/core_rig.h"
#include "tests/bench/core/objects.h"
#include "tests/bench/core/plain_registry.h"

namespace berth {
namespace {

using BenchClock = std::chrono::steady_clock;
double seconds_since(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

// One berthd's worth of state: a store, and the core over it.
class Bench {
 public:
  explicit Bench(const std::string& directory, uint64_t batch) {
    RocksDbStoreOptions options;
    options.directory = directory;
    Result<std::unique_ptr<RocksDbStore>> opened = RocksDbStore::open(options);
    if (!opened) bench::fail(opened.error());
    store_ = std::move(*opened);
    DirectoryConfig config = bench::core_config();
    config.batch_items_max = static_cast<uint32_t>(batch);
    rig_ = std::make_unique<bench::CoreRig>(config, store_.get());
  }

  bench::CoreRig& rig() { return *rig_; }
  size_t replicas() const { return std::as_const(*rig_).directory().replicas().size(); }

 private:
  std::unique_ptr<RocksDbStore> store_;
  std::unique_ptr<bench::CoreRig> rig_;
};

double plain_map_bytes(uint64_t objects) {
  const uint64_t before = rpc::resident_bytes();
  bench::PlainRegistry registry;
  for (uint64_t object = 0; object < objects; ++object)
    registry[{bench::digests_of(1, object, 1)[0], 1, 0, 0}] = {1, object * bench::kPageBytes,
                                                               bench::kPageBytes, 2};
  return static_cast<double>(rpc::resident_bytes() - before) / static_cast<double>(registry.size());
}

// In a child process of its own, so that neither side reuses memory that the other freed.
double plain_map_bytes_in_child(uint64_t objects) {
  int ends[2];
  BERTH_CHECK(pipe(ends) == 0, "a pipe can be made");
  const pid_t child = fork();
  BERTH_CHECK(child >= 0, "a child can be forked");
  if (child == 0) {
    const double bytes = plain_map_bytes(objects);
    _exit(write(ends[1], &bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
  }
  double bytes = 0;
  BERTH_CHECK(read(ends[0], &bytes, sizeof bytes) == sizeof bytes, "the child answers");
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  return bytes;
}

struct ReadBack {
  uint64_t bytes = 0;
  double seconds = 0;
};
ReadBack read_back(const std::string& directory) {
  const auto start = BenchClock::now();
  ReadBack read;
  std::vector<char> buffer(1 << 20);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
           file.gcount() > 0)
      read.bytes += static_cast<uint64_t>(file.gcount());
  }
  read.seconds = seconds_since(start);
  return read;
}

int run_benchmark(uint64_t objects, uint64_t batch, std::string directory, bool json) {
  std::string made;
  if (directory.empty()) {
    made = (std::filesystem::temp_directory_path() / "berth-bench-XXXXXX").string();
    BERTH_CHECK(mkdtemp(made.data()) != nullptr, "a temporary directory can be made");
    directory = made;
  }
  const double map_bytes = plain_map_bytes_in_child(objects);  // before RocksDB starts threads
  uint64_t grown_bytes = 0;
  double fill_seconds = 0;
  {
    Bench filled(directory, batch);
    bench::CoreMember member(filled.rig().runner(), {});
    const uint64_t before = rpc::resident_bytes();
    const auto fill_start = BenchClock::now();
    member.fill(objects, batch);
    fill_seconds = seconds_since(fill_start);
    grown_bytes = rpc::resident_bytes() - before;
  }
  const double bytes_per_object = static_cast<double>(grown_bytes) / static_cast<double>(objects);

  const auto restart_start = BenchClock::now();
  std::optional<Bench> restarted(std::in_place, directory, batch);
  const double restart_seconds = seconds_since(restart_start);
  const size_t replicas = restarted->replicas();
  restarted.reset();
  const ReadBack read = read_back(directory);
  if (!made.empty()) std::filesystem::remove_all(made);
  BERTH_CHECK(replicas == objects, "every object came back");

  std::printf(
      json ? "{\"objects\": %llu, \"batch\": %llu, \"bytes_per_object\": %.1f, "
             "\"plain_map_bytes_per_object\": %.1f, "
             "\"fill_seconds\": %.2f, \"objects_per_second\": %.0f, \"restart_seconds\": %.2f, "
             "\"restart_seconds_per_million\": %.2f, \"read_back_seconds\": %.3f, "
             "\"state_directory_bytes\": %llu}\n"
           : "%llu objects in batches of %llu\n"
             "memory     %.1f bytes of resident growth per object (plain unordered_map: %.1f)\n"
             "store      %.2f s, %.0f objects/s reserved and committed\n"
             "restart    %.2f s, %.2f s per million (reading the files back: %.3f s, %llu bytes)\n",
      static_cast<unsigned long long>(objects), static_cast<unsigned long long>(batch),
      bytes_per_object, map_bytes, fill_seconds, static_cast<double>(objects) / fill_seconds,
      restart_seconds, restart_seconds * 1e6 / static_cast<double>(objects), read.seconds,
      static_cast<unsigned long long>(read.bytes));
  return 0;
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  uint64_t objects = 1'000'000;
  uint64_t batch = 128;
  std::string directory;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--objects" && has_value)
      objects = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--batch" && has_value)
      batch = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--directory" && has_value)
      directory = argv[++i];
    else if (argument == "--json")
      json = true;
    else {
      std::fprintf(
          stderr,
          "usage: berth-bench-directory [--objects N] [--batch N] [--directory DIR] [--json]\n");
      return argument == "--help" ? 0 : 2;
    }
  }
  if (objects == 0 || batch == 0 || batch > 4096) {
    std::fprintf(stderr, "berth-bench-directory: --objects takes 1 or more, --batch 1 to 4096\n");
    return 2;
  }
  return berth::run_benchmark(objects, batch, directory, json);
}
