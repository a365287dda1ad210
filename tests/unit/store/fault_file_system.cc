#include "tests/unit/store/fault_file_system.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

namespace berth::testing {

class FaultFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultFile(FaultFileSystem& system, std::string name,
            std::unique_ptr<rocksdb::FSWritableFile> target)
      : FSWritableFileOwnerWrapper(std::move(target)), system_(system), name_(std::move(name)) {}

  using FSWritableFileOwnerWrapper::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
    const uint64_t room = system_.room_for(name_, data.size());
    const rocksdb::IOStatus written =
        FSWritableFileOwnerWrapper::Append(rocksdb::Slice(data.data(), room), options, debug);
    if (room == data.size() || !written.ok()) return written;
    return rocksdb::IOStatus::NoSpace("no space left on device");
  }
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo&,
                           rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    if (!system_.may_sync(name_)) return rocksdb::IOStatus::IOError("input/output error in fsync");
    const uint64_t bytes = GetFileSize(options, debug);
    const rocksdb::IOStatus synced = FSWritableFileOwnerWrapper::Sync(options, debug);
    if (synced.ok()) system_.note_synced(name_, bytes);
    return synced;
  }
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  FaultFileSystem& system_;
  const std::string name_;
};

// A file that is only opened to be fsynced.
class FaultSyncedFile final : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  FaultSyncedFile(FaultFileSystem& system, std::string name,
                  std::unique_ptr<rocksdb::FSRandomRWFile> target)
      : FSRandomRWFileOwnerWrapper(std::move(target)), system_(system), name_(std::move(name)) {}

  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override {
    if (!system_.may_sync(name_)) return rocksdb::IOStatus::IOError("input/output error in fsync");
    const uint64_t bytes = std::filesystem::file_size(name_);
    const rocksdb::IOStatus synced = FSRandomRWFileOwnerWrapper::Sync(options, debug);
    if (synced.ok()) system_.note_synced(name_, bytes);
    return synced;
  }

 private:
  FaultFileSystem& system_;
  const std::string name_;
};

bool FaultFileSystem::is_among(const std::string& name, Files files) {
  switch (files) {
    case Files::kNone:
      return false;
    case Files::kLogs:
      return name.ends_with(".log");
    case Files::kTables:
      return name.ends_with(".sst");
    case Files::kAll:
      return true;
  }
  return false;
}

void FaultFileSystem::fill(Files files, uint64_t torn_bytes) {
  const std::lock_guard lock(mutex_);
  full_ = files;
  torn_bytes_ = torn_bytes;
}

void FaultFileSystem::fail_syncs(Files files) {
  const std::lock_guard lock(mutex_);
  sync_fails_ = files;
}

void FaultFileSystem::mend() {
  const std::lock_guard lock(mutex_);
  full_ = Files::kNone;
  sync_fails_ = Files::kNone;
}

void FaultFileSystem::power_cut() {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, bytes] : synced_bytes_) {
    REQUIRE(std::filesystem::file_size(name) >= bytes);
    std::filesystem::resize_file(name, bytes);
  }
  synced_bytes_.clear();
}

uint64_t FaultFileSystem::syncs() const {
  const std::lock_guard lock(mutex_);
  return syncs_;
}

uint64_t FaultFileSystem::room_for(const std::string& name, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!is_among(name, full_)) return bytes;
  return std::min(std::exchange(torn_bytes_, 0), bytes - 1);
}

bool FaultFileSystem::may_sync(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return !is_among(name, sync_fails_);
}

void FaultFileSystem::note_synced(const std::string& name, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  ++syncs_;
  uint64_t& synced = synced_bytes_[name];
  synced = std::max(synced, bytes);
}

rocksdb::IOStatus FaultFileSystem::NewWritableFile(const std::string& name,
                                                   const rocksdb::FileOptions& options,
                                                   std::unique_ptr<rocksdb::FSWritableFile>* result,
                                                   rocksdb::IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSWritableFile> target;
  const rocksdb::IOStatus made = FileSystemWrapper::NewWritableFile(name, options, &target, debug);
  if (!made.ok()) return made;
  *result = std::make_unique<FaultFile>(*this, name, std::move(target));
  const std::lock_guard lock(mutex_);
  synced_bytes_[name] = 0;
  return made;
}

rocksdb::IOStatus FaultFileSystem::NewRandomRWFile(const std::string& name,
                                                   const rocksdb::FileOptions& options,
                                                   std::unique_ptr<rocksdb::FSRandomRWFile>* result,
                                                   rocksdb::IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSRandomRWFile> target;
  const rocksdb::IOStatus opened =
      FileSystemWrapper::NewRandomRWFile(name, options, &target, debug);
  if (opened.ok()) *result = std::make_unique<FaultSyncedFile>(*this, name, std::move(target));
  return opened;
}

rocksdb::IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to,
                                              const rocksdb::IOOptions& options,
                                              rocksdb::IODebugContext* debug) {
  const rocksdb::IOStatus renamed = FileSystemWrapper::RenameFile(from, to, options, debug);
  if (!renamed.ok()) return renamed;
  const std::lock_guard lock(mutex_);
  if (auto moved = synced_bytes_.extract(from)) {
    moved.key() = to;
    synced_bytes_.erase(to);
    synced_bytes_.insert(std::move(moved));
  }
  return renamed;
}

rocksdb::IOStatus FaultFileSystem::DeleteFile(const std::string& name,
                                              const rocksdb::IOOptions& options,
                                              rocksdb::IODebugContext* debug) {
  const rocksdb::IOStatus deleted = FileSystemWrapper::DeleteFile(name, options, debug);
  const std::lock_guard lock(mutex_);
  if (deleted.ok()) synced_bytes_.erase(name);
  return deleted;
}

}  // namespace berth::testing
