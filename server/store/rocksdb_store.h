// The store of berthd: RocksDB in <state directory>/store, one column family per record kind, one
// WriteBatch per commit.
//
// Holds the state directory's lock as long as it lives. Opening is careful in this order: lock;
// check the logs; read the header without writing anything; only then open for writing. So a store
// of a newer berthd, a damaged one and one in use are refused exactly as they were found.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/error.h"
#include "server/store/store.h"

namespace rocksdb {
class FileSystem;
}  // namespace rocksdb

namespace berth {

struct RocksDbStoreOptions {
  std::string directory;  // the state directory; must exist
  Durability durability = Durability::kInterval;
  // Of all families together. Small, because a restart reads back as much from the log, and a
  // million replicas should not be held twice.
  uint64_t memtable_bytes = uint64_t{32} << 20;
  // Table files kept open. Zero: a share of the process's descriptor limit, because sockets need
  // the rest.
  uint32_t open_files_max = 0;
  std::shared_ptr<rocksdb::FileSystem> file_system;  // null: the operating system's
};

class RocksDbStore final : public Store {
 public:
  // Errors: kStoreLocked naming the holder's pid; kStoreIncompatible naming both schemas;
  // kStoreCorrupt naming the file and what to do; kInvalidConfig when the descriptor limit is too
  // low; kIoError, kStoreDegraded.
  static Result<std::unique_ptr<RocksDbStore>> open(RocksDbStoreOptions options);
  ~RocksDbStore() override;

  Result<> commit(const std::vector<Mutation>& mutations, Time now, bool sync) override;
  Result<> flush() override;
  Result<Loaded> load(const Sink& sink, const std::function<void(uint64_t)>& progress) override;
  Result<> reopen() override;

 private:
  class Implementation;
  explicit RocksDbStore(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> implementation_;
};

}  // namespace berth
