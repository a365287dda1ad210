// A file system under RocksDB that fails on request, and that forgets at a power cut what was never
// fsynced. Creation, renames and deletion of files are taken as durable; what is inside them is
// not.
#pragma once

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace berth::testing {

class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  enum class Files { kNone, kLogs, kTables, kAll };

  FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultFileSystem"; }

  // Appends to these files fail as on a full disk, after `torn_bytes` of the first one.
  void fill(Files files, uint64_t torn_bytes = 0);
  void fail_syncs(Files files);
  void mend();
  // With nothing open any more: every file ends where it was last fsynced.
  void power_cut();

  uint64_t syncs() const;

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  friend class FaultFile;
  friend class FaultSyncedFile;
  static bool is_among(const std::string& name, Files files);

  // How much of an append may be written; all of it means that it succeeds.
  uint64_t room_for(const std::string& name, uint64_t bytes);
  bool may_sync(const std::string& name);
  void note_synced(const std::string& name, uint64_t bytes);

  mutable std::mutex mutex_;  // guards everything below: RocksDB flushes on threads of its own
  Files full_ = Files::kNone;
  Files sync_fails_ = Files::kNone;
  uint64_t torn_bytes_ = 0;
  uint64_t syncs_ = 0;
  std::map<std::string, uint64_t> synced_bytes_;  // of files written since the last power cut
};

}  // namespace berth::testing
