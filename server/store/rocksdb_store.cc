#include "server/store/rocksdb_store.h"

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "common/os_error.h"
#include "common/state_lock.h"
#include "common/version.h"
#include "server/store/codec.h"
#include "server/store/log_check.h"
#include "server/store/origin.h"
#include "server/store/rocks_database.h"
#include "server/store/rocks_runs.h"

namespace berth {
namespace {

// Records handed to the sink at once.
constexpr size_t kLoadBatchRecords = 4096;

// Pools before the replicas in them, runs before replicas that stand for themselves, replicas
// before the leases on them.
constexpr std::array kLoadOrder{
    Family::kNamespaces, Family::kSessions,   Family::kPools, Family::kRuns,  Family::kReplicas,
    Family::kLeases,     Family::kOperations, Family::kJobs,  Family::kTasks, Family::kPins};

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

Result<uint32_t> open_files_of_process() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return open_files_for(limit.rlim_cur);
}

}  // namespace

namespace {

// What is read, on its way to the sink in batches.
class Outlet {
 public:
  Outlet(const Store::Sink& sink, const std::function<void(uint64_t)>& progress)
      : sink_(sink), progress_(progress) {}

  uint64_t records() const { return records_; }
  void take(Mutation&& record) {
    ++records_;
    if (const Reservation* reservation = std::get_if<Reservation>(&record.value)) {
      std::vector<Mutation> expanded = expand(*reservation);
      make_room(expanded.size());
      std::move(expanded.begin(), expanded.end(), std::back_inserter(batch_));
    } else {
      make_room(1);
      batch_.push_back(std::move(record));
    }
  }
  void take(std::span<const Replica> replicas) {
    records_ += replicas.size();
    make_room(replicas.size());
    for (const Replica& replica : replicas) batch_.push_back(put_of(replica));
  }
  void hand_over() {
    if (batch_.empty()) return;
    sink_(std::exchange(batch_, {}));
    if (progress_) progress_(records_);
  }

 private:
  void make_room(size_t count) {
    if (batch_.size() + count > kLoadBatchRecords) hand_over();
    if (batch_.empty()) batch_.reserve(std::max(count, kLoadBatchRecords));
  }

  const Store::Sink& sink_;
  const std::function<void(uint64_t)>& progress_;
  std::vector<Mutation> batch_;
  uint64_t records_ = 0;
};

}  // namespace

class RocksDbStore::Implementation {
 public:
  Implementation(RocksDbStoreOptions options, StateLock lock)
      : options_(std::move(options)),
        lock_(std::move(lock)),
        rocks_{options_.directory + "/store", options_.memtable_bytes, options_.open_files_max,
               options_.file_system} {}

  Result<> open();
  Result<> commit(const std::vector<Mutation>& mutations, Time now, bool sync);
  Result<> flush();
  Result<Loaded> load(const Sink& sink, const std::function<void(uint64_t)>& progress);

 private:
  tl::unexpected<Error> corrupt(const std::string& what) const {
    return tl::unexpected(error_of(rocksdb::Status::Corruption(what), rocks_.folder));
  }
  // Nothing more is written to a database that failed: it may be torn in the middle.
  tl::unexpected<Error> broken(const rocksdb::Status& status) {
    is_broken_ = true;
    return refuse(Reason::kStoreDegraded, error_of(status, rocks_.folder).message);
  }
  tl::unexpected<Error> refuse_broken() const {
    return refuse(Reason::kStoreDegraded,
                  "store " + rocks_.folder + " has to be reopened after trouble");
  }
  Result<> put_header(const Meta& meta);
  Result<std::optional<std::string>> read_meta(std::string_view key);
  Result<> put(const Mutation& mutation);
  Result<> put_all(std::span<const Mutation> mutations);
  Result<> load_family(Family family, Outlet& outlet);

  const RocksDbStoreOptions options_;
  const StateLock lock_;
  const RocksOptions rocks_;
  std::unique_ptr<RocksDatabase> database_;  // null while it could not be opened
  std::atomic<bool> is_broken_ = true;       // flush() looks from its own thread
  Codec codec_;
  rocksdb::WriteBatch batch_;
  std::optional<RocksRuns> runs_;   // of database_
  std::optional<Time> stored_now_;  // by a commit to database_
};

Result<> RocksDbStore::Implementation::open() {
  is_broken_ = true;
  runs_.reset();
  stored_now_.reset();
  database_.reset();
  const Result<size_t> logs = check_logs(rocks_.folder);
  if (!logs && logs.error().reason != Reason::kStoreCorrupt) return tl::unexpected(logs.error());
  if (!logs) return corrupt(logs.error().message);
  const Result<std::optional<StoreHeader>> header = read_header(rocks_);
  if (!header) return tl::unexpected(header.error());
  // RocksDB makes the next log before it removes the last one, so one is always there.
  if (*header && *logs == 0) return corrupt("its log is gone");
  if (std::error_code error; !std::filesystem::create_directory(rocks_.folder, error) && error)
    return refuse_os("make " + rocks_.folder, error.value());
  Result<std::unique_ptr<RocksDatabase>> opened = RocksDatabase::open(rocks_);
  if (!opened) return tl::unexpected(opened.error());
  database_ = *std::move(opened);
  runs_.emplace(*database_, batch_, codec_);
  is_broken_ = false;
  return {};
}

// ---- Writing
// ------------------------------------------------------------------------------------------------

Result<> RocksDbStore::Implementation::put_header(const Meta& meta) {
  StoreHeader header;
  header.meta = meta;
  header.written_by = kVersion;
  // From now on this is where the store lives.
  Result<Origin> origin = ensure_origin(options_.directory);
  if (!origin) {
    is_broken_ = true;
    return refuse(Reason::kStoreDegraded, origin.error().message);
  }
  header.origin = *origin;
  batch_.Put(database_->handle(Family::kMeta), slice(kHeaderKey), encode_header(header));
  return {};
}

Result<> RocksDbStore::Implementation::put(const Mutation& mutation) {
  if (const Meta* meta = std::get_if<Meta>(&mutation.value)) return put_header(*meta);
  if (runs_->change(mutation)) return {};
  const std::optional<EncodedChange> change = codec_.encode(mutation);
  if (!change) return {};
  rocksdb::ColumnFamilyHandle* family = database_->handle(change->family);
  if (change->is_forgotten)
    batch_.Delete(family, slice(change->key));
  else
    batch_.Put(family, slice(change->key), slice(change->value));
  return {};
}

Result<> RocksDbStore::Implementation::put_all(std::span<const Mutation> mutations) {
  while (!mutations.empty()) {
    const size_t in_run = runs_->put(mutations);
    if (in_run == 0)
      if (auto done = put(mutations[0]); !done) return done;
    mutations = mutations.subspan(std::max(in_run, size_t{1}));
  }
  const rocksdb::Status finished = runs_->finish();
  return finished.ok() ? Result<>{} : broken(finished);
}

Result<> RocksDbStore::Implementation::commit(const std::vector<Mutation>& mutations, Time now,
                                              bool sync) {
  if (is_broken_) return refuse_broken();
  if (!runs_->is_known())
    if (auto known = runs_->read({}); !known)
      return broken(rocksdb::Status::Corruption(known.error().message));
  batch_.Clear();
  if (auto put = put_all(mutations); !put) return put;
  if (now != stored_now_)
    batch_.Put(database_->handle(Family::kMeta), slice(kClockKey), encode_clock(now));

  rocksdb::WriteOptions write;
  write.sync = options_.durability == Durability::kSync ||
               (sync && options_.durability != Durability::kNone);
  const rocksdb::Status written = database_->db().Write(write, &batch_);
  if (!written.ok()) return broken(written);
  stored_now_ = now;
  return {};
}

Result<> RocksDbStore::Implementation::flush() {
  if (is_broken_) return refuse_broken();
  if (options_.durability == Durability::kNone) return {};
  const rocksdb::Status synced = database_->sync_logs();
  return synced.ok() ? Result<>{} : broken(synced);
}

// ---- Reading
// ------------------------------------------------------------------------------------------------

Result<std::optional<std::string>> RocksDbStore::Implementation::read_meta(std::string_view key) {
  std::string value;
  const rocksdb::Status found = database_->db().Get(
      rocksdb::ReadOptions(), database_->handle(Family::kMeta), slice(key), &value);
  if (found.IsNotFound()) return std::nullopt;
  if (!found.ok()) return tl::unexpected(error_of(found, rocks_.folder));
  return value;
}

Result<Store::Loaded> RocksDbStore::Implementation::load(
    const Sink& sink, const std::function<void(uint64_t)>& progress) {
  if (is_broken_) return refuse_broken();
  Loaded loaded;
  const auto header_bytes = read_meta(kHeaderKey);
  if (!header_bytes) return tl::unexpected(header_bytes.error());
  const auto clock_bytes = read_meta(kClockKey);
  if (!clock_bytes) return tl::unexpected(clock_bytes.error());

  loaded.is_new = !*header_bytes;
  if (!loaded.is_new) {
    Result<StoreHeader> header = decode_header(**header_bytes);
    if (!header) return tl::unexpected(header.error());
    const Result<std::optional<Origin>> origin = read_origin(options_.directory);
    if (!origin) return tl::unexpected(origin.error());
    loaded.moved = *origin != header->origin;
    sink({put_of(header->meta)});
  }
  if (*clock_bytes) {
    const Result<Time> now = decode_clock(**clock_bytes);
    if (!now) return tl::unexpected(now.error());
    loaded.now = *now;
  }
  Outlet outlet(sink, progress);
  for (const Family family : kLoadOrder)
    if (auto read = load_family(family, outlet); !read) return tl::unexpected(read.error());
  outlet.hand_over();
  loaded.records = outlet.records();
  const auto eviction_bytes = read_meta(kEvictionKey);
  if (!eviction_bytes) return tl::unexpected(eviction_bytes.error());
  if (*eviction_bytes) {
    Result<Mutation> setting = codec_.decode(Family::kMeta, kEvictionKey, **eviction_bytes);
    if (!setting) return corrupt(setting.error().message);
    sink({*std::move(setting)});
  }
  if (loaded.is_new && loaded.records > 0) return corrupt("it has records but no header");
  return loaded;
}

Result<> RocksDbStore::Implementation::load_family(Family family, Outlet& outlet) {
  if (family == Family::kRuns) {
    const auto read = runs_->read([&](std::span<const Replica> live) { outlet.take(live); });
    return read ? Result<>{} : corrupt(read.error().message);
  }
  const std::unique_ptr<rocksdb::Iterator> at = database_->scan(family);
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    Result<Mutation> record = codec_.decode(family, view(at->key()), view(at->value()));
    if (!record) return corrupt(record.error().message);
    if (runs_->has(record->key))
      return corrupt(unreadable_record(family, view(at->key())).message + ": it is in a run too");
    outlet.take(*std::move(record));
  }
  if (!at->status().ok()) return tl::unexpected(error_of(at->status(), rocks_.folder));
  return {};
}

// ---- The store
// ----------------------------------------------------------------------------------------------

RocksDbStore::RocksDbStore(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
RocksDbStore::~RocksDbStore() = default;

Result<std::unique_ptr<RocksDbStore>> RocksDbStore::open(RocksDbStoreOptions options) {
  if (options.open_files_max == 0) {
    const Result<uint32_t> derived = open_files_of_process();
    if (!derived) return tl::unexpected(derived.error());
    options.open_files_max = *derived;
  }
  Result<StateLock> lock = StateLock::take(options.directory);
  if (!lock) return tl::unexpected(lock.error());
  auto implementation = std::make_unique<Implementation>(std::move(options), *std::move(lock));
  if (auto opened = implementation->open(); !opened) return tl::unexpected(opened.error());
  return std::unique_ptr<RocksDbStore>(new RocksDbStore(std::move(implementation)));
}

Result<> RocksDbStore::commit(const std::vector<Mutation>& mutations, Time now, bool sync) {
  return implementation_->commit(mutations, now, sync);
}
Result<> RocksDbStore::flush() { return implementation_->flush(); }
Result<Store::Loaded> RocksDbStore::load(const Sink& sink,
                                         const std::function<void(uint64_t)>& progress) {
  return implementation_->load(sink, progress);
}
Result<> RocksDbStore::reopen() { return implementation_->open(); }

}  // namespace berth
