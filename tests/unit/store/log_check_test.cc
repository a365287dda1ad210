#include "server/store/log_check.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "common/small_file.h"
#include "server/store/rocksdb_store.h"
#include "tests/unit/common/temporary_directory.h"
#include "tests/unit/store/record_samples.h"
#include "tests/unit/store/stored.h"

namespace berth {
namespace {

struct RealLog {
  std::string content;
  size_t last_record_at = 0;  // where the last commit begins
};

std::string only_log_of(const std::string& directory) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(directory + "/store"))
    if (entry.path().extension() == ".log") found = entry.path();
  REQUIRE_FALSE(found.empty());
  return found;
}

// A log as RocksDB writes it: `commits` small batches.
RealLog real_log(int commits) {
  testing::TemporaryDirectory directory;
  testing::RecordSamples samples(1);
  auto store = RocksDbStore::open({.directory = directory.path()});
  REQUIRE(store);
  RealLog log;
  for (int i = 0; i < commits; ++i) {
    if (i == commits - 1)
      log.last_record_at = std::filesystem::file_size(only_log_of(directory.path()));
    REQUIRE((*store)->commit(samples.one_of_each(), Time{i}, false));
  }
  store->reset();
  log.content = read_small_file(only_log_of(directory.path())).value();
  return log;
}

TEST_CASE("a log that was cut anywhere is torn, not damaged", "[store][log]") {
  const RealLog log = real_log(6);
  for (size_t bytes = 0; bytes <= log.content.size(); ++bytes)
    if (!check_log("x.log", log.content.substr(0, bytes))) FAIL("refused when cut at " << bytes);
}

TEST_CASE("a log that was cut and then filled with zeros is torn, not damaged", "[store][log]") {
  const RealLog log = real_log(6);
  for (size_t bytes = 0; bytes <= log.content.size(); bytes += 7) {
    std::string content = log.content.substr(0, bytes);
    content.resize(content.size() + 5000, '\0');
    if (!check_log("x.log", content)) FAIL("refused when cut at " << bytes);
  }
}

// Every byte, so also those of lengths, which RocksDB alone would take for the end of the log.
TEST_CASE("one changed byte before the last record is damage", "[store][log]") {
  const RealLog log = real_log(6);
  for (size_t at = 0; at < log.last_record_at; ++at) {
    std::string content = log.content;
    content[at] = static_cast<char>(content[at] ^ 0x40);
    const Result<> checked = check_log("000004.log", content);
    if (checked) FAIL("accepted with byte " << at << " changed");
    if (at == 0) {
      CHECK(checked.error().reason == Reason::kStoreCorrupt);
      CHECK_THAT(checked.error().message,
                 Catch::Contains("000004.log") && Catch::Contains("damaged at byte 0 "));
    }
  }
}

TEST_CASE("damage is found across blocks of a long log", "[store][log]") {
  const RealLog log = real_log(600);
  REQUIRE(log.content.size() > 5 * 32768);
  CHECK(check_log("x.log", log.content));
  for (const size_t at :
       {size_t{100}, size_t{32768}, size_t{2 * 32768 - 3}, log.content.size() / 2}) {
    std::string content = log.content;
    for (size_t i = at; i < at + 4; ++i) content[i] = static_cast<char>(~content[i]);
    CHECK_FALSE(check_log("x.log", content));
  }
  // A hole of whole blocks, as lost pages leave it.
  std::string content = log.content;
  std::fill(content.begin() + 32768, content.begin() + 3 * 32768, '\0');
  CHECK_FALSE(check_log("x.log", content));
}

TEST_CASE("a folder that is missing has no damaged log", "[store][log]") {
  testing::TemporaryDirectory directory;
  CHECK(check_logs(directory.path() + "/store"));
}

}  // namespace
}  // namespace berth
