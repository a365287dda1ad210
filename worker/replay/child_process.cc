#include "worker/replay/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <deque>
#include <fstream>
#include <utility>

#include "common/os_error.h"
#include "common/process.h"

extern char** environ;

namespace berth::replay {
namespace {

// posix_spawn's two parameter objects, destroyed whatever happens.
struct SpawnParameters {
  SpawnParameters() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnParameters() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnParameters(const SpawnParameters&) = delete;
  SpawnParameters& operator=(const SpawnParameters&) = delete;

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
};

// Our stop signals are blocked and SIGPIPE is ignored; a child inherits neither.
void restore_signals(posix_spawnattr_t& attributes) {
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const ChildOptions& options) {
  SpawnParameters parameters;
  restore_signals(parameters.attributes);
  if (!options.log.empty()) {
    posix_spawn_file_actions_addopen(&parameters.files, STDOUT_FILENO, options.log.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0640);
    posix_spawn_file_actions_adddup2(&parameters.files, STDOUT_FILENO, STDERR_FILENO);
  }
  if (options.pass_fd >= 0)
    posix_spawn_file_actions_adddup2(&parameters.files, options.pass_fd, options.as_fd);

  std::vector<std::string> words = options.arguments;
  words.insert(words.begin(), options.program);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, options.program.c_str(), &parameters.files,
                                 &parameters.attributes, pointers.data(), environ);
  if (failed != 0) return refuse_os("start " + options.program, failed);
  Result<UniqueFd> pidfd = open_pidfd(pid);
  if (!pidfd) {
    ChildProcess child(pid, UniqueFd());
    return tl::unexpected(pidfd.error());
  }
  return ChildProcess(pid, std::move(*pidfd));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  reap();
}

bool ChildProcess::has_ended() const { return pid_ < 0 || has_exited(pidfd_.get()); }

void ChildProcess::ask_to_stop() const {
  if (pid_ > 0) ::kill(pid_, SIGTERM);
}

bool ChildProcess::wait_or_kill(Duration within) {
  if (pid_ < 0) return true;
  pollfd watched{pidfd_.get(), POLLIN, 0};
  const bool ended = ::poll(&watched, 1, static_cast<int>(within.millis)) == 1;
  if (!ended) ::kill(pid_, SIGKILL);
  reap();
  return ended;
}

void ChildProcess::reap() {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

std::string last_lines(const std::string& path, size_t lines_max) {
  std::ifstream file(path);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > lines_max) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace berth::replay
