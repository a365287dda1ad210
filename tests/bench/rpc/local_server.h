// The two servers of a benchmark, each in a process of its own: berthd over a fresh state
// directory, and the echo server. Both listen on a unix socket and on a TCP port of this host.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/address.h"
#include "common/error.h"
#include "worker/replay/child_process.h"

namespace berth::bench {

enum class Transport : uint8_t { kTcp, kUnix };

// A directory that is gone with the object, with everything in it.
class WorkFolder {
 public:
  // Under `parent`; empty: the system's folder for temporary files. Errors: kIoError.
  static Result<WorkFolder> make(const std::string& parent);
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder();

  const std::string& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

class LocalServer {
 public:
  // `config` is what follows the [server] section. While a file `disk_switch` exists, its fsyncs
  // take 200 ms longer (slow_disk.cc); empty: its disk is left alone. Errors: kIoError,
  // kUnavailable with the log.
  static Result<LocalServer> start_berthd(const std::string& folder, const std::string& config,
                                          const std::string& disk_switch = "");
  static Result<LocalServer> start_echo(const std::string& folder);

  // Stopped with SIGTERM when the object goes.
  LocalServer(LocalServer&&) noexcept = default;
  LocalServer& operator=(LocalServer&&) = delete;
  ~LocalServer();

  Address address(Transport transport) const;
  pid_t pid() const { return process_->pid(); }
  bool has_ended() const { return process_->has_ended(); }

  // kill -9; and the same program over the same state at the same addresses.
  void kill_hard();
  Result<> start_again();
  // The last lines of its log.
  std::string log_tail() const;

 private:
  LocalServer(std::string name, std::string folder, uint16_t port)
      : name_(std::move(name)), folder_(std::move(folder)), port_(port) {}
  Result<> launch();

  std::string name_;
  std::string folder_;
  uint16_t port_;
  replay::ChildOptions options_;
  std::optional<replay::ChildProcess> process_;
};

}  // namespace berth::bench
