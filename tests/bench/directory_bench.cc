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
#include <string>
#include <unordered_map>

#include "common/check.h"
#include "server/directory/invariants.h"
#include "server/rpc/resident_memory.h"
#include "server/sequencer/decide.h"
#include "server/store/rocksdb_store.h"

namespace berth {
namespace {

using BenchClock = std::chrono::steady_clock;
double seconds_since(BenchClock::time_point start) {
  return std::chrono::duration<double>(BenchClock::now() - start).count();
}

constexpr uint64_t kPage = 4096;

Digest digest_of(uint64_t object) {
  Digest digest;
  uint64_t x = object + 1;
  for (size_t i = 0; i < 32; i += 8) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u + object;
    x ^= x >> 27;
    std::memcpy(digest.bytes.data() + i, &x, 8);
  }
  return digest;
}

class Bench {
 public:
  Bench(std::string directory, uint64_t objects, uint64_t batch)
      : path_(std::move(directory)), objects_(objects), batch_(batch) {
    config_.batch_items_max = static_cast<uint32_t>(batch);
    config_.object_bytes_max = kPage;
  }

  void open() {
    RocksDbStoreOptions options;
    options.directory = path_;
    Result<std::unique_ptr<RocksDbStore>> opened = RocksDbStore::open(options);
    if (!opened) fail(opened.error());
    store_ = std::move(*opened);
  }

  void load() {
    directory_ = Directory();
    const Result<Store::Loaded> loaded =
        store_->load([&](std::vector<Mutation>&& part) { directory_.install(part); }, {});
    if (!loaded) fail(loaded.error());
    if (const std::string broken = check_invariants(directory_); !broken.empty())
      fail({Reason::kInternal, broken});
    run(Restart{StoreId{1, 1}, false});
  }

  void set_up() {
    OpenNamespace open_namespace;
    open_namespace.spec.name = "bench";
    open_namespace.spec.digest_bytes = 32;
    open_namespace.fingerprint = {1, 1};
    namespace_ = std::get<NamespaceOpened>(run(open_namespace)).id;
    OpenWorker open_worker;
    open_worker.request_token = open_worker.token = {1, 1};
    open_worker.name = "w0";
    open_worker.node = "host";
    open_worker.boot_id = {1, 1};
    worker_.session = std::get<WorkerOpened>(run(open_worker)).session;
    worker_.incarnation =
        std::get<ReattachBegun>(run(BeginReattach{worker_.session, {1, 1}, 0, {}})).incarnation;
    run(EndReattach{worker_, {}});
    run(LinkUp{worker_});
    RegisterPool pool;
    pool.caller = worker_;
    pool.spec.name = "cpu";
    pool.spec.capacity_bytes = pool.spec.backing_bytes = (objects_ + batch_) * kPage;
    pool.spec.page_bytes = kPage;
    run(pool);
    client_ = std::get<ClientOpened>(
                  run(OpenClient{worker_, {2, 2}, {2, 2}, "engine", "engine.life", {}, {}, 1}))
                  .session;
  }

  void fill() {
    for (uint64_t object = 0; object < objects_; object += batch_) store_batch(object);
  }

  Outcome run(const Command& command) {
    now_ = now_ + milliseconds(1);
    Decision decision = decide(directory_, config_, {&command, 1}, now_);
    if (!decision.outcomes[0]) fail(decision.outcomes[0].error());
    if (decision.is_durable)
      if (const Result<> committed = store_->commit(decision.mutations, now_, decision.sync);
          !committed)
        fail(committed.error());
    install(directory_, decision);
    return std::move(*decision.outcomes[0]);
  }

  void close() { store_.reset(); }
  size_t replicas() const { return directory_.replicas().size(); }

 private:
  void store_batch(uint64_t first_object) {
    Reserve reserve;
    reserve.id = {worker_, client_, ++operation_, 1};
    reserve.namespace_id = namespace_;
    reserve.sizes = {kPage};
    for (uint64_t i = 0; i < batch_ && first_object + i < objects_; ++i)
      reserve.keys.push_back(
          {digest_of(first_object + i), static_cast<uint32_t>(namespace_.value()), 0, 0});
    const auto reserved = std::get<Reserved>(run(reserve));
    Commit commit;
    commit.id = {worker_, client_, ++operation_, 2};
    for (uint64_t i = 0; i < reserved.pools.size(); ++i) {
      commit.replicas.push_back(ReplicaId(reserved.first.value() + i));
      commit.offsets.push_back((first_object + i) * kPage);
    }
    run(commit);
    run(Heartbeat{worker_, {}, {{client_, operation_}}});
  }

  [[noreturn]] static void fail(const Error& error) {
    std::fprintf(stderr, "berth-bench-directory: %s: %s\n",
                 std::string(name_of(error.reason)).c_str(), error.message.c_str());
    std::exit(1);
  }

  const std::string path_;
  const uint64_t objects_;
  const uint64_t batch_;
  DirectoryConfig config_;
  std::unique_ptr<RocksDbStore> store_;
  Directory directory_;
  Time now_;
  Caller worker_;
  SessionId client_;
  NamespaceId namespace_;
  OperationNumber operation_ = 0;
};

// The obvious registry: a map from key to place. What a directory without durability, leases or
// budgets would hold.
double plain_map_bytes(uint64_t objects) {
  struct Facts {
    uint64_t pool, offset, size;
    uint32_t state;
  };
  struct Hash {
    size_t operator()(const ObjectKey& key) const { return static_cast<size_t>(hash_of(key)); }
  };
  const uint64_t before = rpc::resident_bytes();
  std::unordered_map<ObjectKey, Facts, Hash> map;
  for (uint64_t object = 0; object < objects; ++object)
    map[{digest_of(object), 1, 0, 0}] = {1, object * kPage, kPage, 2};
  return static_cast<double>(rpc::resident_bytes() - before) / static_cast<double>(map.size());
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
  Bench bench(directory, objects, batch);
  bench.open();
  bench.load();
  bench.set_up();
  const uint64_t before = rpc::resident_bytes();
  const auto fill_start = BenchClock::now();
  bench.fill();
  const double fill_seconds = seconds_since(fill_start);
  const double bytes_per_object =
      static_cast<double>(rpc::resident_bytes() - before) / static_cast<double>(objects);
  bench.close();

  const auto restart_start = BenchClock::now();
  bench.open();
  bench.load();
  const double restart_seconds = seconds_since(restart_start);
  const size_t replicas = bench.replicas();
  bench.close();
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
