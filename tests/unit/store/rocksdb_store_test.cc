#include "server/store/rocksdb_store.h"

#include <rocksdb/db.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/small_file.h"
#include "server/store/codec.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/raw_database.h"
#include "tests/unit/store/record_samples.h"
#include "tests/unit/store/store_process.h"
#include "tests/unit/store/stored.h"

namespace berth {
namespace {

namespace fs = std::filesystem;
using testing::a_header;
using testing::header_of;
using testing::make_older;
using testing::put_header;
using testing::put_raw;
using testing::read_all;
using testing::TemporaryDirectory;
using testing::with_database;

std::unique_ptr<RocksDbStore> opened(const std::string& directory,
                                     uint64_t memtable_bytes = 1 << 20) {
  auto store = RocksDbStore::open({.directory = directory,
                                   .durability = Durability::kInterval,
                                   .memtable_bytes = memtable_bytes});
  if (!store) FAIL(store.error().message);
  return *std::move(store);
}

Error refusal_of(const std::string& directory) {
  const auto store = RocksDbStore::open({.directory = directory});
  REQUIRE_FALSE(store);
  return store.error();
}

Replica a_ready_replica(uint64_t id) {
  Replica replica = testing::RecordSamples(id).a_replica();
  replica.id = ReplicaId(id);
  return replica;
}

// A store with replicas 1 to `count`, one commit each.
void fill(const std::string& directory, uint64_t count, uint64_t memtable_bytes = 1 << 20) {
  const auto store = opened(directory, memtable_bytes);
  REQUIRE(store->commit({a_header()}, Time{1}, false));
  for (uint64_t id = 1; id <= count; ++id)
    REQUIRE(store->commit({put_of(a_ready_replica(id))}, Time{static_cast<int64_t>(id)}, false));
}

uint64_t records_in(const std::string& directory) {
  return read_all(*opened(directory)).loaded.records;
}

std::string newest_file(const std::string& directory, const std::string& extension) {
  std::string found;
  for (const auto& entry : fs::directory_iterator(directory + "/store"))
    if (entry.path().extension() == extension && entry.file_size() > 0)
      found = std::max(found, entry.path().string());
  REQUIRE_FALSE(found.empty());
  return found;
}

std::map<std::string, std::string> contents_of(const std::string& directory) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file()) contents[entry.path()] = read_small_file(entry.path()).value();
  return contents;
}

// ---- Who may open it
// ------------------------------------------------------------------------------------------

TEST_CASE("a second server on a state directory is refused, naming the first one's pid",
          "[store][rocksdb]") {
  TemporaryDirectory directory;
  const auto first = opened(directory.path());
  const Error error = refusal_of(directory.path());
  CHECK(error.reason == Reason::kStoreLocked);
  CHECK_THAT(error.message, Catch::Contains("in use by pid " + std::to_string(getpid())));
  // And the first one is none the worse for it.
  CHECK(first->commit({a_header()}, Time{1}, true));
}

TEST_CASE("a store whose server was killed can be opened at once", "[store][rocksdb]") {
  TemporaryDirectory directory;
  testing::StoreProcess server(directory.path(), Durability::kInterval);
  REQUIRE(server.next_acknowledged());
  CHECK(refusal_of(directory.path()).reason == Reason::kStoreLocked);
  server.kill_hard();
  CHECK(records_in(directory.path()) >= 3);
}

TEST_CASE("a state directory that is missing is named", "[store][rocksdb]") {
  TemporaryDirectory directory;
  const Error error = refusal_of(directory.path() + "/nowhere");
  CHECK(error.reason == Reason::kIoError);
  CHECK_THAT(error.message, Catch::Contains("/nowhere"));
}

TEST_CASE("table files take a share of the descriptor limit, and a hopeless limit is refused",
          "[store][rocksdb]") {
  CHECK(open_files_for(1024).value() == 256);
  CHECK(open_files_for(256).value() == 64);
  CHECK(open_files_for(1'000'000).value() == 1024);
  const auto refused = open_files_for(100);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().reason == Reason::kInvalidConfig);
  CHECK_THAT(refused.error().message, Catch::Contains("100") && Catch::Contains("128"));
}

// ---- Schemas
// --------------------------------------------------------------------------------------------------

TEST_CASE("a store of a newer schema is refused, naming both, and stays as it is",
          "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  with_database(directory.path(), [](RocksDatabase& database) {
    StoreHeader header;
    header.schema = kStoreSchema + 1;
    header.written_by = "9.9.9";
    put_header(database, header);
  });
  const auto before = contents_of(directory.path());
  const Error error = refusal_of(directory.path());
  CHECK(error.reason == Reason::kStoreIncompatible);
  CHECK_THAT(error.message, Catch::Contains("9.9.9") &&
                                Catch::Contains("schema is " + std::to_string(kStoreSchema + 1)) &&
                                Catch::Contains("up to " + std::to_string(kStoreSchema)));
  CHECK(contents_of(directory.path()) == before);
}

TEST_CASE("a store with a family that we do not know is refused, naming it, and stays as it is",
          "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  with_database(directory.path(), [](RocksDatabase& database) {
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    REQUIRE(database.db().CreateColumnFamily({}, "tomorrow", &handle).ok());
    database.db().DestroyColumnFamilyHandle(handle);
  });
  const auto before = contents_of(directory.path());
  const Error error = refusal_of(directory.path());
  CHECK(error.reason == Reason::kStoreIncompatible);
  CHECK_THAT(error.message, Catch::Contains("tomorrow") && Catch::Contains("newer"));
  CHECK(contents_of(directory.path()) == before);
}

TEST_CASE("a store that lacks a family of ours gets it", "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  with_database(directory.path(), [](RocksDatabase& database) {
    REQUIRE(database.db().DropColumnFamily(database.handle(Family::kTasks)).ok());
  });
  CHECK(records_in(directory.path()) == 3);
}

TEST_CASE("a store of schema 1 is taken over whole, and is of our schema from then on",
          "[store][rocksdb][FC-64]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  make_older(directory.path(), 1, {Family::kPins, Family::kRuns});
  {
    const auto store = opened(directory.path());
    CHECK(read_all(*store).loaded.records == 3);
    Pin pin{ReplicaId(1), PinKind::kHard, {}};
    // The first commit of a start raises the epoch, and writes the header with it.
    REQUIRE(store->commit({a_header(), put_of(pin)}, Time{9}, true));
  }
  CHECK(records_in(directory.path()) == 4);
  with_database(directory.path(),
                [](RocksDatabase& database) { CHECK(header_of(database).schema == kStoreSchema); });
}

TEST_CASE("records without a header are refused", "[store][rocksdb]") {
  TemporaryDirectory directory;
  const auto store = opened(directory.path());
  REQUIRE(store->commit({put_of(a_ready_replica(1))}, Time{1}, false));
  const auto loaded = store->load([](std::vector<Mutation>&&) {}, {});
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().reason == Reason::kStoreCorrupt);
}

TEST_CASE("a record that does not read is refused, naming its key", "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  with_database(directory.path(), [](RocksDatabase& database) {
    put_raw(database, Family::kLeases, "12345678", "junk");
  });
  const auto store = opened(directory.path());
  const auto loaded = store->load([](std::vector<Mutation>&&) {}, {});
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().reason == Reason::kStoreCorrupt);
  CHECK_THAT(loaded.error().message,
             Catch::Contains("leases") && Catch::Contains("0x3132333435363738"));
}

// ---- Copies
// ---------------------------------------------------------------------------------------------------

TEST_CASE("a copied store says that it was moved, until it has a home of its own",
          "[store][rocksdb]") {
  TemporaryDirectory original;
  fill(original.path(), 3);
  TemporaryDirectory elsewhere;
  fs::copy(original.path(), elsewhere.path(), fs::copy_options::recursive);

  auto copy = opened(elsewhere.path());
  CHECK(read_all(*copy).loaded.moved);
  REQUIRE(copy->commit({a_header(2)}, Time{9}, true));
  CHECK_FALSE(read_all(*copy).loaded.moved);
  copy.reset();
  CHECK_FALSE(read_all(*opened(elsewhere.path())).loaded.moved);
  CHECK_FALSE(read_all(*opened(original.path())).loaded.moved);
}

TEST_CASE("a store that was copied without its origin is a copy too", "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  fs::remove(directory.path() + "/origin");
  CHECK(read_all(*opened(directory.path())).loaded.moved);
}

// ---- Damage
// ---------------------------------------------------------------------------------------------------

TEST_CASE("a log torn inside its last record opens with everything before it", "[store][rocksdb]") {
  constexpr uint64_t kAcknowledged = 500;
  TemporaryDirectory original;
  uint64_t acknowledged_bytes = 0;
  {
    const auto store = opened(original.path());
    REQUIRE(store->commit({a_header()}, Time{1}, false));
    for (uint64_t id = 1; id <= kAcknowledged; ++id)
      REQUIRE(store->commit({put_of(a_ready_replica(id))}, Time{1}, false));
    acknowledged_bytes = fs::file_size(newest_file(original.path(), ".log"));
    std::vector<Mutation> last;
    for (uint64_t id = kAcknowledged + 1; id <= kAcknowledged + 3; ++id)
      last.push_back(put_of(a_ready_replica(id)));
    REQUIRE(store->commit(last, Time{1}, false));
  }
  const uint64_t whole_bytes = fs::file_size(newest_file(original.path(), ".log"));
  REQUIRE(whole_bytes - acknowledged_bytes > 200);
  for (const uint64_t cut : {uint64_t{1}, uint64_t{2}, uint64_t{7}, uint64_t{50}, uint64_t{117},
                             uint64_t{200}, whole_bytes - acknowledged_bytes}) {
    INFO("cut by " << cut);
    TemporaryDirectory copy;
    fs::copy(original.path(), copy.path(), fs::copy_options::recursive);
    fs::resize_file(newest_file(copy.path(), ".log"), whole_bytes - cut);
    CHECK(records_in(copy.path()) == kAcknowledged);
    CHECK(records_in(copy.path()) == kAcknowledged);  // also when it is opened once more
  }
}

TEST_CASE("a byte changed in the middle of the log is refused, naming the file and what to do",
          "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 500);
  const std::string log = newest_file(directory.path(), ".log");
  std::fstream file(log, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(log) / 2);
  file.seekg(middle);
  const char flipped = static_cast<char>(file.get() ^ 1);
  file.seekp(middle);
  file.put(flipped);
  file.close();

  const auto before = contents_of(directory.path());
  const Error error = refusal_of(directory.path());
  CHECK(error.reason == Reason::kStoreCorrupt);
  CHECK_THAT(error.message, Catch::Contains(log) && Catch::Contains("restore a backup") &&
                                Catch::Contains("mv " + directory.path() + "/store "));
  CHECK(contents_of(directory.path()) == before);
}

TEST_CASE("a table file that is gone is refused, naming it and what to do", "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 12'000,
       64 << 10);  // more than all write buffers hold, so tables were made
  const std::string table = newest_file(directory.path(), ".sst");
  fs::remove(table);
  const Error error = refusal_of(directory.path());
  CHECK(error.reason == Reason::kStoreCorrupt);
  CHECK_THAT(error.message,
             Catch::Contains(fs::path(table).filename()) && Catch::Contains("restore a backup"));
}

TEST_CASE("a store with a file gone is not taken for a new or a smaller one", "[store][rocksdb]") {
  TemporaryDirectory directory;
  fill(directory.path(), 3);
  const std::string store = directory.path() + "/store";
  SECTION("CURRENT") { fs::remove(store + "/CURRENT"); }
  SECTION("the manifest") {
    for (const auto& entry : fs::directory_iterator(store))
      if (entry.path().filename().string().starts_with("MANIFEST")) fs::remove(entry.path());
  }
  SECTION("the log") {
    REQUIRE(records_in(directory.path()) == 3);  // leaves the header in a table
    for (const auto& entry : fs::directory_iterator(store))
      if (entry.path().extension() == ".log") fs::remove(entry.path());
  }
  const Error error = refusal_of(directory.path());
  CHECK(error.reason == Reason::kStoreCorrupt);
  CHECK_THAT(error.message, Catch::Contains("restore a backup"));
}

// ---- A long life
// ----------------------------------------------------------------------------------------------

TEST_CASE("a store that forgets what it made stays small", "[store][rocksdb][FC-59]") {
  TemporaryDirectory directory;
  const auto store = opened(directory.path(), 256 << 10);
  REQUIRE(store->commit({a_header()}, Time{1}, false));
  constexpr uint64_t kLive = 100;
  for (uint64_t id = 1; id <= 40'000; id += 20) {
    std::vector<Mutation> batch;
    for (uint64_t i = id; i < id + 20; ++i) {
      batch.push_back(put_of(a_ready_replica(i)));
      if (i > kLive)
        batch.push_back({RecordTraits<Replica>::key(ReplicaId(i - kLive)), Forgotten{}});
    }
    REQUIRE(store->commit(batch, Time{1}, false));
  }
  CHECK(read_all(*store).loaded.records == kLive);
  uint64_t table_bytes = 0;
  for (const auto& entry : fs::directory_iterator(directory.path() + "/store"))
    if (entry.path().extension() == ".sst") table_bytes += entry.file_size();
  CHECK(table_bytes < 4 << 20);
}

}  // namespace
}  // namespace berth
