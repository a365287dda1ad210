// A forked child of a test, killed and reaped when the test ends. The child only makes system calls
// and leaves with _exit.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace berth::testing {

class ChildProcess {
 public:
  template <class Act>
  explicit ChildProcess(Act act) : pid_(fork()) {
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      act();
      _exit(0);
    }
  }
  ~ChildProcess() { kill_hard(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // kill -9, and waits until the kernel has closed everything that it had.
  void kill_hard() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_;
};

// One byte from one process to another, so that tests wait for events and not for time.
class Gate {
 public:
  Gate() { REQUIRE(pipe(ends_) == 0); }
  ~Gate() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() const {
    const char byte = 'x';
    if (write(ends_[1], &byte, 1) != 1) _exit(9);
  }
  void wait() const {
    char byte = 0;
    if (read(ends_[0], &byte, 1) != 1) _exit(9);
  }

 private:
  int ends_[2];
};

}  // namespace berth::testing
