#include "common/process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

#include "common/os_error.h"

namespace berth {

Result<UniqueFd> open_pidfd(pid_t pid) {
  // glibc 2.36 has the wrapper in a header of its own; the plain call needs none.
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) return refuse_os("open process " + std::to_string(pid));
  return pidfd;
}

bool has_exited(int pidfd) {
  pollfd entry{pidfd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

}  // namespace berth
