#include "server/store/rocks_options.h"

#include <rocksdb/listener.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>

namespace berth {
namespace {

// Records come and go in the order of their ids, so deletions cluster. A table file with this many
// of them in a window is compacted soon, or the scan at start would wade through them, and the
// directory would grow with what is long gone.
constexpr size_t kDeletionWindow = 4096;
constexpr size_t kDeletionTrigger = 1024;
constexpr double kDeletionRatio = 0.5;

// After a write error we close, reopen and reload. RocksDB would rather wait for space and resume
// on a thread of its own, behind our back and across our closing it.
class NoResume final : public rocksdb::EventListener {
 public:
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason, rocksdb::Status,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }
};

}  // namespace

rocksdb::DBOptions database_options(uint64_t memtable_bytes, uint32_t open_files_max) {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.paranoid_checks = true;
  // Over all families: what is replayed at start, and what memory holds twice.
  options.db_write_buffer_size = memtable_bytes;
  options.max_total_wal_size = 4 * memtable_bytes;
  options.max_open_files = static_cast<int>(open_files_max);
  options.max_background_jobs = 2;
  // One thread at a time commits.
  options.allow_concurrent_memtable_write = false;
  // A cut log is replayed up to its cut, and logs behind a cut only where nothing is missing
  // between them. Damage in the middle does not come this far: see log_check.h.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.track_and_verify_wals_in_manifest = true;
  options.max_bgerror_resume_count = 0;
  options.listeners.push_back(std::make_shared<NoResume>());
  // Everything is in the log already.
  options.avoid_flush_during_shutdown = true;
  options.stats_dump_period_sec = 0;
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  return options;
}

rocksdb::ColumnFamilyOptions family_options(uint64_t memtable_bytes, Reads reads) {
  rocksdb::ColumnFamilyOptions options;
  options.write_buffer_size = memtable_bytes;
  // What is only read at start need not be in order before it is written out: a record then costs
  // no search among the others.
  if (reads == Reads::kAtStart)
    options.memtable_factory = std::make_shared<rocksdb::VectorRepFactory>();
  // Mass events write faster than buffers reach the disk, and with two of them RocksDB stops every
  // write until one has. db_write_buffer_size bounds the memory all the same.
  options.max_write_buffer_number = 8;
  // Most families are nearly empty.
  options.arena_block_size = std::min<size_t>(size_t{256} << 10, memtable_bytes / 16);
  options.target_file_size_base = uint64_t{32} << 20;
  // Digests do not compress, and the rest is small.
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kNoCompression;
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(kDeletionWindow, kDeletionTrigger,
                                                    kDeletionRatio));
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;  // read once, at start
  table.block_size = size_t{32} << 10;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace berth
