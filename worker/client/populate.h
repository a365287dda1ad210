// Fills the page table of a mapping from a thread of its own, so that an engine's first copy into
// or out of each page does not stop for a fault: with 4 KiB pages that copy takes about three times
// as long as the next one. The pages are there already, because the worker has touched them all.
//
// A hint: where the kernel cannot do it (before Linux 5.14) the faults come one by one, as ever.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>

namespace berth::client {

class Populating {
 public:
  // The memory stays mapped as long as the object lives.
  explicit Populating(std::span<std::byte> memory);
  // Ends it, wherever it is.
  ~Populating();
  Populating(const Populating&) = delete;
  Populating& operator=(const Populating&) = delete;

  // Returns when it is through.
  void wait();

 private:
  void run(std::span<std::byte> memory);

  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

}  // namespace berth::client
