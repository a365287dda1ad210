// A real process of a test: started with its output in a log file, signalled by pid, and killed and
// reaped when the object goes, whatever became of the test. It dies with the test program, too.
//
// Start it from the thread that lives as long as it should: the kernel ends it with that thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"
#include "common/unique_fd.h"
#include "tests/integration/waiting.h"

namespace berth::testing {

enum class Stdio : uint8_t { kNone, kPiped };

struct ProcessOptions {
  std::vector<std::string> arguments;  // the program's path first
  std::string log;                     // stderr is appended here, stdout too unless it is piped
  Stdio stdio = Stdio::kNone;
  std::vector<std::string> environment;  // "NAME=value", beside our own
  uint64_t descriptors_max = 0;          // RLIMIT_NOFILE; zero: as ours
};

class Process {
 public:
  explicit Process(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void stop() const;   // SIGSTOP, and waits until every thread stands still
  void go_on() const;  // SIGCONT
  void kill_hard();    // kill -9, and waits until the kernel has closed everything it had
  bool has_ended();

  // The exit code, or 128 + the signal. Nothing when it still runs after `bound`.
  std::optional<int> wait_for_end(Duration bound = kSoon);

  std::string log() const;
  bool has_logged(std::string_view text) const;

  // With Stdio::kPiped. A line is without its newline; nothing at the end of the output, or after
  // `bound`.
  void write_line(const std::string& line);
  std::optional<std::string> read_line(Duration bound = kSoon);

 private:
  std::string log_path_;
  UniqueFd input_;
  UniqueFd output_;
  std::string unread_;
  pid_t pid_ = -1;
  std::optional<int> ended_;
};

// Runs a program to its end. `output` is everything that it wrote to stdout and stderr.
struct Finished {
  int code = -1;
  std::string output;
};
Finished run_to_end(const std::vector<std::string>& arguments, const std::string& log,
                    Duration bound = kSoon);

// Path of one of our programs.
std::string program(std::string_view name);
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

}  // namespace berth::testing
