#include "tests/bench/rpc/floors.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "common/os_error.h"
#include "common/unique_fd.h"

namespace berth::bench {
namespace {

constexpr uint64_t kCopiesPerLook = 256;  // at the clock

double seconds_since(uint64_t start_nanos) {
  return static_cast<double>(now_nanos() - start_nanos) / 1e9;
}

}  // namespace

double copies_per_second(const std::vector<MessageSizes>& sizes, double seconds) {
  size_t bytes = 0;
  for (const MessageSizes& size : sizes) bytes += size.request_bytes + size.answer_bytes;
  const std::string from(bytes, 'x');
  std::string to(bytes, '\0');
  uint64_t copies = 0;
  const uint64_t start = now_nanos();
  double passed = 0;
  do {
    for (uint64_t i = 0; i < kCopiesPerLook; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" : : "r"(to.data()) : "memory");  // somebody may read it
    }
    copies += kCopiesPerLook;
    passed = seconds_since(start);
  } while (passed < seconds);
  return static_cast<double>(copies) / passed;
}

Result<double> syncs_per_second(const std::string& folder, uint64_t bytes, double seconds) {
  const std::string path = folder + "/fsync-floor";
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return refuse_os("open " + path);
  ::unlink(path.c_str());
  const std::string content(bytes, 'x');
  uint64_t syncs = 0;
  const uint64_t start = now_nanos();
  double passed = 0;
  do {
    if (::write(file.get(), content.data(), bytes) != static_cast<ssize_t>(bytes) ||
        ::fdatasync(file.get()) != 0)
      return refuse_os("write " + path);
    ++syncs;
    passed = seconds_since(start);
  } while (passed < seconds);
  return static_cast<double>(syncs) / passed;
}

}  // namespace berth::bench
