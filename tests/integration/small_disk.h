// A file system of a few MiB in memory, mounted over a directory, that a test can fill up. It is
// seen by this thread and the processes that it starts only, and is gone with them.
//
// Needs the right to mount; without it is_mounted() is false, filling does nothing, and the test
// says what it left out.
#pragma once

#include <cstdint>
#include <string>

namespace berth::testing {

class SmallDisk {
 public:
  SmallDisk(std::string directory, uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_mounted() const { return is_mounted_; }
  // Leaves no byte free, whatever others free meanwhile being theirs.
  void fill();
  void make_room();

 private:
  std::string filler() const { return directory_ + "/filler"; }
  const std::string directory_;
  bool is_mounted_ = false;
};

}  // namespace berth::testing
