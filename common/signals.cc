#include "common/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/os_error.h"

namespace berth {

Result<UniqueFd> block_stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  signal(SIGPIPE, SIG_IGN);
  if (const int code = pthread_sigmask(SIG_BLOCK, &set, nullptr); code != 0)
    return refuse_os("block stop signals", code);
  UniqueFd descriptor(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return refuse_os("open a signal descriptor");
  return descriptor;
}

int take_stop_signal(int descriptor) {
  signalfd_siginfo info{};
  if (read(descriptor, &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace berth
