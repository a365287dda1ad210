#include "server/store/log_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/os_error.h"
#include "common/unique_fd.h"

namespace berth {
namespace {

// RocksDB's log format: blocks of 32 KiB; in them records [crc 4][length 2][type 1][payload],
// little-endian; less than a header's room at the end of a block is zeros. The crc is over type and
// payload.
constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;
constexpr uint8_t kTypeMax = 4;  // full, first, middle, last

// Table n takes a byte that lies n bytes before the last of eight: so eight are taken at once,
// which is several times as fast, and a restart waits for it.
constexpr size_t kBytesAtOnce = 8;
using CrcTables = std::array<std::array<uint32_t, 256>, kBytesAtOnce>;
constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    tables[0][i] = crc;
  }
  for (size_t n = 1; n < kBytesAtOnce; ++n)
    for (size_t i = 0; i < 256; ++i)
      tables[n][i] = tables[n - 1][i] >> 8 ^ tables[0][tables[n - 1][i] & 0xFF];
  return tables;
}
constexpr CrcTables kCrcTables = make_crc_tables();

// CRC-32C, stored rotated and offset so that a crc of bytes that hold crcs is still good.
uint32_t masked_crc(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little, "so are the logs");
  uint32_t crc = 0xFFFFFFFFu;
  for (; bytes.size() >= kBytesAtOnce; bytes.remove_prefix(kBytesAtOnce)) {
    uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), sizeof eight);
    eight ^= crc;
    crc = 0;
    for (size_t n = 0; n < kBytesAtOnce; ++n)
      crc ^= kCrcTables[kBytesAtOnce - 1 - n][eight >> 8 * n & 0xFF];
  }
  for (const char byte : bytes)
    crc = crc >> 8 ^ kCrcTables[0][(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

// The length of the whole record at the start of `rest`, which ends with its block; zero when there
// is none.
size_t record_at(std::string_view rest) {
  if (rest.size() < kHeaderBytes) return 0;
  uint32_t crc = 0;
  std::memcpy(&crc, rest.data(), sizeof crc);
  const size_t length = static_cast<uint8_t>(rest[4]) | size_t{static_cast<uint8_t>(rest[5])} << 8;
  const auto type = static_cast<uint8_t>(rest[6]);
  if (type == 0 || type > kTypeMax || kHeaderBytes + length > rest.size()) return 0;
  return masked_crc(rest.substr(6, 1 + length)) == crc ? kHeaderBytes + length : 0;
}

std::string_view rest_of_block(std::string_view content, size_t at) {
  return content.substr(at, kBlockBytes - at % kBlockBytes);
}

// Where the unbroken run of records from `at` ends.
size_t end_of_run(std::string_view content, size_t at) {
  while (at < content.size()) {
    const std::string_view rest = rest_of_block(content, at);
    if (rest.size() < kHeaderBytes && rest.size() == kBlockBytes - at % kBlockBytes) {
      at += rest.size();
      continue;
    }
    const size_t length = record_at(rest);
    if (length == 0) return at;
    at += length;
  }
  return content.size();
}

// Whether any whole record begins behind `at`. In the block of the break it may begin anywhere;
// later blocks begin with one, and one more is looked at byte by byte in case its own beginning is
// damaged too.
bool has_record_behind(std::string_view content, size_t at) {
  const size_t searched_end = std::min(content.size(), (at / kBlockBytes + 2) * kBlockBytes);
  for (size_t i = at + 1; i < searched_end; ++i)
    if (record_at(rest_of_block(content, i)) > 0) return true;
  for (size_t i = searched_end; i < content.size(); i += kBlockBytes)
    if (record_at(rest_of_block(content, i)) > 0) return true;
  return false;
}

class MappedFile {
 public:
  MappedFile(int descriptor, size_t size) : size_(size) {
    if (size > 0) address_ = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  }
  ~MappedFile() {
    if (size_ > 0 && is_mapped()) munmap(address_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  bool is_mapped() const { return address_ != MAP_FAILED; }
  std::string_view content() const { return {static_cast<const char*>(address_), size_}; }

 private:
  size_t size_;
  void* address_ = nullptr;
};

Result<> check_file(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || fstat(file.get(), &status) != 0) return refuse_os("read " + path);
  const MappedFile mapped(file.get(), static_cast<size_t>(status.st_size));
  if (!mapped.is_mapped()) return refuse_os("map " + path);
  return check_log(path, mapped.content());
}

}  // namespace

Result<> check_log(const std::string& name, std::string_view content) {
  const size_t broken_at = end_of_run(content, 0);
  if (broken_at == content.size() || !has_record_behind(content, broken_at)) return {};
  return refuse(Reason::kStoreCorrupt,
                "log " + name + " is damaged at byte " + std::to_string(broken_at) + " of " +
                    std::to_string(content.size()) + ", with whole records behind it");
}

Result<size_t> check_logs(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return 0;
  std::vector<std::string> logs;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error))
    if (entries->path().extension() == ".log") logs.push_back(entries->path().string());
  if (error) return refuse_os("list " + folder, error.value());
  std::sort(logs.begin(), logs.end());
  for (const std::string& log : logs)
    if (auto checked = check_file(log); !checked) return tl::unexpected(checked.error());
  return logs.size();
}

}  // namespace berth
