#include "server/rpc/resident_memory.h"

#include <unistd.h>

#include <charconv>

#include "common/small_file.h"

namespace berth::rpc {

uint64_t resident_bytes() {
  // "size resident shared ...", in pages.
  const auto statm = read_small_file("/proc/self/statm");
  if (!statm) return 0;
  const size_t space = statm->find(' ');
  if (space == std::string::npos) return 0;
  uint64_t pages = 0;
  std::from_chars(statm->data() + space + 1, statm->data() + statm->size(), pages);
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace berth::rpc
