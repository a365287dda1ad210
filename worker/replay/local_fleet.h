// --local: one berthd and some berth-workers of our own, in a directory of their own, started from
// the folder that our program is in and stopped with the object.
//
//   DIR/berthd.toml  berthd.sock  berthd.log  berthd.pid  state/
//   DIR/w0.toml      w0.sock      w0.log      w0.pid      run/
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "worker/replay/child_process.h"
#include "worker/replay/options.h"

namespace berth::replay {

class LocalFleet {
 public:
  // Returns at once: workers attach when the server is there, and clients wait for both. Errors:
  // kIoError.
  static Result<LocalFleet> start(const ReplayOptions& options);
  LocalFleet(LocalFleet&&) noexcept = default;
  LocalFleet& operator=(LocalFleet&&) = delete;
  // Stops workers, then server: SIGTERM, after a while SIGKILL. Removes the directory unless it was
  // given.
  ~LocalFleet();

  const std::string& directory() const { return directory_; }
  std::string server_address() const { return "unix:" + path("berthd.sock"); }
  std::vector<std::string> worker_sockets() const;
  // The name of a process that ended although nobody stopped it.
  std::optional<std::string> find_dead() const;
  // The last lines of every log, for a failure's report.
  std::string logs() const;

 private:
  struct Member {
    std::string name;
    ChildProcess process;
  };
  LocalFleet(std::string directory, bool is_kept)
      : directory_(std::move(directory)), is_kept_(is_kept) {}

  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  Result<> start_member(const std::string& program, const std::string& name,
                        const std::string& config);
  std::string server_config(const ReplayOptions& options) const;
  std::string worker_config(const std::string& name, const ReplayOptions& options) const;

  std::string directory_;
  bool is_kept_;
  std::vector<Member> members_;  // the server first
};

}  // namespace berth::replay
