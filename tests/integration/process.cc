#include "tests/integration/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

namespace berth::testing {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  UniqueFd read;
  UniqueFd write;
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view given(*entry);
    // A test run under a service manager must not have its children speak in its name.
    if (given.starts_with("NOTIFY_SOCKET=") || given.starts_with("WATCHDOG_")) continue;
    all.emplace_back(given);
  }
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// In the child, between fork and exec: system calls only.
struct ChildSetup {
  int input;
  int output;
  int log;
  uint64_t descriptors_max;
  char** arguments;
  char** environment;
};
[[noreturn]] void become(const ChildSetup& setup) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(setup.input, STDIN_FILENO);
  dup2(setup.output, STDOUT_FILENO);
  dup2(setup.log, STDERR_FILENO);
  if (setup.descriptors_max > 0) {
    const rlimit limit{setup.descriptors_max, setup.descriptors_max};
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  execve(setup.arguments[0], setup.arguments, setup.environment);
  _exit(127);
}

}  // namespace

Process::Process(const ProcessOptions& options) : log_path_(options.log) {
  const bool is_piped = options.stdio == Stdio::kPiped;
  Pipe to_child;
  Pipe from_child;
  const UniqueFd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd log(open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  REQUIRE(log.valid());
  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const ChildSetup setup{is_piped ? to_child.read.get() : nothing.get(),
                         is_piped ? from_child.write.get() : log.get(),
                         log.get(),
                         options.descriptors_max,
                         const_cast<char**>(argument_pointers.data()),
                         const_cast<char**>(environment_pointers.data())};
  pid_ = fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) become(setup);
  if (!is_piped) return;
  input_ = std::move(to_child.write);
  output_ = std::move(from_child.read);
}

Process::~Process() { kill_hard(); }

void Process::signal(int number) const {
  if (!ended_) REQUIRE(kill(pid_, number) == 0);
}

void Process::stop() const {
  signal(SIGSTOP);
  REQUIRE(eventually([&] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }));
}

void Process::go_on() const { signal(SIGCONT); }

void Process::kill_hard() {
  if (ended_) return;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool Process::has_ended() {
  if (ended_) return true;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
  ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

std::optional<int> Process::wait_for_end(Duration bound) {
  eventually([&] { return has_ended(); }, bound);
  return ended_;
}

std::string Process::log() const { return read_file(log_path_); }

bool Process::has_logged(std::string_view text) const {
  return log().find(text) != std::string::npos;
}

void Process::write_line(const std::string& line) {
  const std::string text = line + "\n";
  REQUIRE(write(input_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

std::optional<std::string> Process::read_line(Duration bound) {
  const SteadyClock clock;
  const int64_t until = clock.monotonic_millis() + bound.millis;
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const int64_t left = until - clock.monotonic_millis();
    pollfd ready{output_.get(), POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) <= 0) return std::nullopt;
    char buffer[4096];
    const ssize_t count = read(output_.get(), buffer, sizeof buffer);
    if (count <= 0) return std::nullopt;
    unread_.append(buffer, static_cast<size_t>(count));
  }
}

Finished run_to_end(const std::vector<std::string>& arguments, const std::string& log,
                    Duration bound) {
  Process process({.arguments = arguments, .log = log});
  const auto code = process.wait_for_end(bound);
  Finished finished{code.value_or(-1), process.log()};
  INFO(finished.output);
  REQUIRE(code);
  return finished;
}

std::string program(std::string_view name) {
  return std::string(BERTH_BIN_DIR) + "/" + std::string(name);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace berth::testing
