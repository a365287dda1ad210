// Zeroed memory for tables that grow large. It is taken from the kernel when it is first touched,
// so a big piece costs nothing until it is used, and never moves. Huge pages are asked for, not
// demanded: a table of gigabytes that is read at random spends more time on address translation
// than on its own lines without them.
#pragma once

#include <cstddef>
#include <utility>

namespace berth {

class ZeroedMemory {
 public:
  static constexpr size_t kHugePage = size_t{2} << 20;
  // kHuge: whole huge pages are touched at once, which a small table would waste.
  enum class Pages { kPlain, kHuge };

  // Throws std::bad_alloc as a container would.
  ZeroedMemory(size_t size_bytes, Pages pages);
  ZeroedMemory(ZeroedMemory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ZeroedMemory();

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace berth
