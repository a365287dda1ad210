// Loaded into berthd by berth-bench (LD_PRELOAD), to show what waits for the disk and what does
// not: while the file that BERTH_SLOW_DISK names is there, every fsync takes 200 ms longer. Nothing
// else of the process changes.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>

namespace {

void stall() {
  const char* disk_switch = std::getenv("BERTH_SLOW_DISK");
  if (!disk_switch || access(disk_switch, F_OK) != 0) return;
  const timespec wait{0, 200'000'000};
  nanosleep(&wait, nullptr);
}

int call_next(const char* name, int fd) {
  using Sync = int (*)(int);
  return reinterpret_cast<Sync>(dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) {
  stall();
  return call_next("fsync", fd);
}

extern "C" int fdatasync(int fd) {
  stall();
  return call_next("fdatasync", fd);
}
