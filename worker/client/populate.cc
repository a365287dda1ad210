#include "worker/client/populate.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace berth::client {
namespace {

#ifdef MADV_POPULATE_READ
constexpr int kAdvice = MADV_POPULATE_READ;
#else
constexpr int kAdvice = 22;
#endif

// Some milliseconds each: the end of a mapping waits for one at most.
constexpr size_t kSliceBytes = size_t{16} << 20;
// Behind everything that the engine does itself.
constexpr int kNiceness = 10;

}  // namespace

Populating::Populating(std::span<std::byte> memory) : thread_([this, memory] { run(memory); }) {}

Populating::~Populating() {
  is_stopped_ = true;
  wait();
}

void Populating::wait() {
  if (thread_.joinable()) thread_.join();
}

void Populating::run(std::span<std::byte> memory) {
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNiceness);
  while (!memory.empty() && !is_stopped_) {
    const size_t slice = std::min(memory.size(), kSliceBytes);
    // For reading also where the engine writes: pages that are there and shared need no more.
    if (::madvise(memory.data(), slice, kAdvice) != 0) return;
    memory = memory.subspan(slice);
  }
}

}  // namespace berth::client
