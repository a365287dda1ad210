// RocksDB opened the way we need it: options, families by our names, its statuses as our errors,
// its log as ours. Owns the database and closes it. Private to server/store.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/file_system.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/error.h"
#include "server/store/codec.h"

namespace berth {

struct RocksOptions {
  std::string folder;
  uint64_t memtable_bytes = 0;
  uint32_t open_files_max = 0;
  std::shared_ptr<rocksdb::FileSystem> file_system;
};

class RocksDatabase {
 public:
  // Opens for writing; makes what is missing, also families that an older berthd did not know.
  static Result<std::unique_ptr<RocksDatabase>> open(const RocksOptions& options);
  ~RocksDatabase();

  rocksdb::DB& db() { return *db_; }
  // Fsyncs what is in the logs, through descriptors of its own: RocksDB's SyncWAL() beside a
  // Write() that fails ends in one of its assertions, which Debian's build has on. May run beside
  // everything but the destructor.
  rocksdb::Status sync_logs();
  rocksdb::ColumnFamilyHandle* handle(Family family) {
    return handles_[static_cast<size_t>(family)];
  }
  // For reading a whole family once.
  std::unique_ptr<rocksdb::Iterator> scan(Family family);
  const std::string& folder() const { return folder_; }

 private:
  RocksDatabase() = default;

  std::string folder_;
  std::unique_ptr<rocksdb::Env> env_;  // null: the default one; outlives the database
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, kFamilyNames.size()> handles_{};
  rocksdb::ColumnFamilyHandle* default_handle_ = nullptr;  // RocksDB wants one; it stays empty
  std::string newest_synced_log_;  // of sync_logs(): whose name is durable too
};

// The header of a store that is there, read without changing one byte on disk; nothing when there
// is none yet. Errors: kStoreIncompatible when the store is of a newer schema or holds families
// that we do not know.
Result<std::optional<StoreHeader>> read_header(const RocksOptions& options);

// What to tell whoever was refused by RocksDB: kStoreCorrupt with what to do, kStoreLocked,
// kStoreIncompatible or kStoreDegraded.
Error error_of(const rocksdb::Status& status, const std::string& folder);

// How many table files may be open under a limit of `descriptors_max`. Errors: kInvalidConfig when
// it is too low.
Result<uint32_t> open_files_for(uint64_t descriptors_max);

}  // namespace berth
