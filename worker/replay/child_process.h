// A process that this one started: it never outlives the object, and is never waited for twice.
// Its pidfd says when it ended. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/time.h"
#include "common/unique_fd.h"

namespace berth::replay {

struct ChildOptions {
  std::string program;  // path
  std::vector<std::string> arguments;
  std::string log;   // file for its output; empty: ours
  int pass_fd = -1;  // given to the child under the number `as_fd`
  int as_fd = -1;
};

class ChildProcess {
 public:
  // Starts with no signal blocked. Errors: kIoError naming the program.
  static Result<ChildProcess> start(const ChildOptions& options);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // SIGKILL, if it still runs.
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  bool has_ended() const;
  void ask_to_stop() const;  // SIGTERM
  // Waits for its end, then kills it. False when it had to be killed.
  bool wait_or_kill(Duration within);

 private:
  ChildProcess(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  void reap();

  pid_t pid_ = -1;  // -1: reaped or moved away
  UniqueFd pidfd_;
};

// The end of a log, for the report of a failure: at most so many lines.
std::string last_lines(const std::string& path, size_t lines_max);

}  // namespace berth::replay
