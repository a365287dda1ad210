#include "common/zeroed_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace berth {
namespace {

void* map(size_t size_bytes) {
  void* at = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return at;
}

}  // namespace

ZeroedMemory::ZeroedMemory(size_t size_bytes, Pages pages) : size_(size_bytes) {
  if (pages == Pages::kPlain) {
    data_ = map(size_bytes);
    return;
  }
  // Where a huge page can start; what the mapping has before and behind is given back.
  auto* const from = static_cast<std::byte*>(map(size_bytes + kHugePage));
  const size_t past = reinterpret_cast<uintptr_t>(from) % kHugePage;
  const size_t before = past == 0 ? 0 : kHugePage - past;
  if (before > 0) munmap(from, before);
  data_ = from + before;
  munmap(from + before + size_bytes, kHugePage - before);
  madvise(data_, size_bytes, MADV_HUGEPAGE);  // refused where the kernel has none: still memory
}

ZeroedMemory::~ZeroedMemory() {
  if (data_) munmap(data_, size_);
}

}  // namespace berth
