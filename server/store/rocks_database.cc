#include "server/store/rocks_database.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <vector>

#include "common/log.h"
#include "common/units.h"
#include "server/store/rocks_options.h"

namespace berth {
namespace {

// RocksDB's warnings in our log, or nowhere: without a logger it would make files of its own in the
// folder.
class RocksLog final : public rocksdb::Logger {
 public:
  enum class Echo { kYes, kNo };
  explicit RocksLog(Echo echo) : Logger(rocksdb::InfoLogLevel::WARN_LEVEL), echo_(echo) {}

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    if (echo_ == Echo::kNo) return;
    char line[1024];
    std::vsnprintf(line, sizeof line, format, arguments);
    log::warning("rocksdb", {{"said", line}});
  }
  void LogHeader(const char*, va_list) override {}

 private:
  const Echo echo_;
};

bool is_ours(const std::string& family) {
  return family == rocksdb::kDefaultColumnFamilyName ||
         std::find(kFamilyNames.begin(), kFamilyNames.end(), family) != kFamilyNames.end();
}

std::unique_ptr<rocksdb::Env> env_over(const std::shared_ptr<rocksdb::FileSystem>& file_system) {
  return file_system ? rocksdb::NewCompositeEnv(file_system) : nullptr;
}

rocksdb::Env* env_or_default(const std::unique_ptr<rocksdb::Env>& env) {
  return env ? env.get() : rocksdb::Env::Default();
}

std::string newer_text(const std::string& folder) {
  return "store " + folder + " was written by a newer berthd";
}

}  // namespace

Result<std::unique_ptr<RocksDatabase>> RocksDatabase::open(const RocksOptions& options) {
  std::unique_ptr<RocksDatabase> database(new RocksDatabase());
  database->folder_ = options.folder;
  database->env_ = env_over(options.file_system);
  rocksdb::DBOptions db_options = database_options(options.memtable_bytes, options.open_files_max);
  db_options.env = env_or_default(database->env_);
  db_options.info_log = std::make_shared<RocksLog>(RocksLog::Echo::kYes);

  const rocksdb::ColumnFamilyOptions of_family =
      family_options(options.memtable_bytes, Reads::kAtStart);
  std::vector<rocksdb::ColumnFamilyDescriptor> families{
      {rocksdb::kDefaultColumnFamilyName, of_family}};
  for (const std::string_view name : kFamilyNames)
    families.emplace_back(std::string(name), of_family);
  // A run that became sparse is read to be written anew.
  families[1 + static_cast<size_t>(Family::kRuns)].options =
      family_options(options.memtable_bytes, Reads::kAnyTime);

  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status opened =
      rocksdb::DB::Open(db_options, options.folder, families, &handles, &db);
  if (!opened.ok()) return tl::unexpected(error_of(opened, options.folder));
  database->db_.reset(db);
  database->default_handle_ = handles[0];
  std::copy(handles.begin() + 1, handles.end(), database->handles_.begin());
  return database;
}

RocksDatabase::~RocksDatabase() {
  if (!db_) return;
  db_->DestroyColumnFamilyHandle(default_handle_);
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  // What was acknowledged is in the log; an error here is the trouble that we close it for.
  db_->Close().PermitUncheckedError();
}

rocksdb::Status RocksDatabase::sync_logs() {
  rocksdb::FileSystem& files = *db_->GetFileSystem();
  std::vector<std::string> names;
  if (const auto s = files.GetChildren(folder_, {}, &names, nullptr); !s.ok()) return s;
  std::erase_if(names, [](const std::string& name) { return !name.ends_with(".log"); });
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::unique_ptr<rocksdb::FSRandomRWFile> log;
    const rocksdb::IOStatus opened = files.NewRandomRWFile(folder_ + "/" + name, {}, &log, nullptr);
    // Removed meanwhile: what was in it is in tables.
    if (opened.IsPathNotFound() || opened.IsNotFound()) continue;
    if (!opened.ok()) return opened;
    if (const auto s = log->Sync({}, nullptr); !s.ok()) return s;
  }
  if (names.empty() || names.back() == newest_synced_log_) return {};
  std::unique_ptr<rocksdb::FSDirectory> directory;
  if (const auto s = files.NewDirectory(folder_, {}, &directory, nullptr); !s.ok()) return s;
  if (const auto s = directory->Fsync({}, nullptr); !s.ok()) return s;
  newest_synced_log_ = names.back();
  return {};
}

std::unique_ptr<rocksdb::Iterator> RocksDatabase::scan(Family family) {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = size_t{2} << 20;
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options, handle(family)));
}

Result<std::optional<StoreHeader>> read_header(const RocksOptions& options) {
  const std::unique_ptr<rocksdb::Env> env = env_over(options.file_system);
  rocksdb::DBOptions db_options = database_options(options.memtable_bytes, options.open_files_max);
  db_options.create_if_missing = false;
  db_options.create_missing_column_families = false;
  db_options.env = env_or_default(env);
  db_options.info_log = std::make_shared<RocksLog>(RocksLog::Echo::kNo);
  const auto refused = [&](const rocksdb::Status& status) {
    return tl::unexpected(error_of(status, options.folder));
  };

  const rocksdb::Status is_there = db_options.env->FileExists(options.folder + "/CURRENT");
  if (is_there.IsNotFound()) return std::nullopt;
  std::vector<std::string> families;
  if (const auto s = rocksdb::DB::ListColumnFamilies(db_options, options.folder, &families);
      !s.ok())
    return refused(s);
  const std::string meta(kFamilyNames[static_cast<size_t>(Family::kMeta)]);
  // Families are made one after the other: the process may have ended before the first of ours.
  if (std::find(families.begin(), families.end(), meta) == families.end()) return std::nullopt;

  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  const rocksdb::ColumnFamilyOptions of_family =
      family_options(options.memtable_bytes, Reads::kAtStart);
  if (const auto s = rocksdb::DB::OpenForReadOnly(
          db_options, options.folder,
          {{rocksdb::kDefaultColumnFamilyName, of_family}, {meta, of_family}}, &handles, &opened);
      !s.ok())
    return refused(s);
  const std::unique_ptr<rocksdb::DB> db(opened);
  std::string value;
  const rocksdb::Status found =
      db->Get(rocksdb::ReadOptions(), handles[1], std::string(kHeaderKey), &value);
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
  if (!found.ok() && !found.IsNotFound()) return refused(found);

  std::optional<StoreHeader> header;
  if (found.ok()) {
    Result<StoreHeader> decoded = decode_header(value);
    if (!decoded) return tl::unexpected(decoded.error());
    header = *decoded;
  }
  if (header && header->schema > kStoreSchema)
    return refuse(Reason::kStoreIncompatible,
                  newer_text(options.folder) + " (" + header->written_by + "): its schema is " +
                      std::to_string(header->schema) + ", this one reads up to " +
                      std::to_string(kStoreSchema) + "; nothing was changed");
  for (const std::string& family : families)
    if (!is_ours(family))
      return refuse(Reason::kStoreIncompatible, newer_text(options.folder) + ": this one (schema " +
                                                    std::to_string(kStoreSchema) +
                                                    ") does not know its family " + family +
                                                    "; nothing was changed");
  return header;
}

Error error_of(const rocksdb::Status& status, const std::string& folder) {
  std::string said = "store " + folder + ": " + status.ToString();
  // A table that is missing is looked for under LevelDB's name last, and that is the name that the
  // status has.
  if (const size_t suffix = said.find(".ldb"); suffix != std::string::npos)
    said.replace(suffix, 4, ".sst");
  const std::string to_start_empty =
      "; restore a backup of the state directory, or start empty after: mv " + folder + " " +
      folder + ".broken";
  // A file that the manifest names and that is not there is as lost as one that does not read back.
  if (status.IsCorruption() || status.IsPathNotFound() || status.IsNotFound())
    return {Reason::kStoreCorrupt, said + to_start_empty};
  if (status.IsInvalidArgument() || status.IsNotSupported())
    return {Reason::kStoreIncompatible, said};
  if (status.IsNoSpace()) return {Reason::kStoreDegraded, said + "; free space on its file system"};
  if (status.IsBusy() ||
      (status.IsIOError() && status.ToString().find("lock") != std::string::npos))
    return {Reason::kStoreLocked, said};
  return {Reason::kStoreDegraded, said};
}

Result<uint32_t> open_files_for(uint64_t descriptors_max) {
  // Below this, even a server with few sessions would run out for its sockets.
  constexpr uint64_t kDescriptorsMin = 128;
  constexpr uint64_t kOpenFilesMax = 1024;
  if (descriptors_max < kDescriptorsMin)
    return refuse(Reason::kInvalidConfig,
                  "the limit of open files is " + std::to_string(descriptors_max) + "; at least " +
                      std::to_string(kDescriptorsMin) + " are needed (LimitNOFILE=, ulimit -n)");
  return static_cast<uint32_t>(std::min(descriptors_max / 4, kOpenFilesMax));
}

}  // namespace berth
