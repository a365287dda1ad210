// One server and its workers as real processes in a temporary directory, and the engines that a
// test lets join them. Everything is killed with the object. When a test fails, the end of every
// log is printed.
//
//   Cluster cluster;                              // berthd is serving, no worker yet
//   WorkerProcess& worker = cluster.add_worker(); // attached, its pool is LIVE
//   auto engine = cluster.engine(worker, "engine-a");
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/admin.h"
#include "tests/integration/daemon_config.h"
#include "tests/integration/engine.h"
#include "tests/integration/process.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth::testing {

class ServerProcess {
 public:
  ServerProcess(const std::string& directory, ServerTuning tuning);

  // Starts it with the present tuning; start() also waits until it serves.
  void launch();
  void start();
  void restart_after_kill();
  // SIGTERM, and demands that it ends well.
  void stop_gracefully(Duration bound = kSoon);

  ServerTuning tuning;
  std::vector<std::string> environment;
  uint64_t descriptors_max = 0;

  Process& process() { return *process_; }
  Admin& admin() { return admin_; }
  const std::string& address() const { return address_; }
  std::string state_directory() const { return server_state(directory_, tuning); }
  std::string config_path() const { return directory_ + "/berthd.toml"; }
  std::string log() const { return read_file(directory_ + "/berthd.log"); }
  // Of the running process.
  uint16_t http_port() const;

 private:
  std::string directory_;
  std::string address_;
  Admin admin_;
  std::unique_ptr<Process> process_;
};

class WorkerProcess {
 public:
  WorkerProcess(const std::string& directory, Admin& admin, WorkerTuning tuning);

  void launch();
  void start();
  bool is_ready();
  void stop_gracefully(Duration bound = kSoon);

  const WorkerTuning tuning;

  Process& process() { return *process_; }
  const std::string& socket() const { return socket_; }
  const std::string& pool() const { return pool_; }
  std::string log_path() const { return directory_ + "/" + tuning.name + ".log"; }
  std::string config_path() const { return directory_ + "/" + tuning.name + ".toml"; }
  std::string runtime() const { return worker_runtime(directory_, tuning); }

 private:
  std::string directory_;
  Admin& admin_;
  std::string socket_;
  std::string pool_;
  std::unique_ptr<Process> process_;
};

class Cluster {
 public:
  explicit Cluster(ServerTuning tuning = {});
  ~Cluster();

  WorkerProcess& add_worker(const WorkerTuning& tuning = {});
  std::unique_ptr<Engine> engine(const WorkerProcess& worker, const std::string& engine_id,
                                 Enter enter = Enter::kJoined);

  // Of the pool that this worker registered last.
  v1::PoolRow pool(const WorkerProcess& worker) { return server.admin().pool(worker.pool()); }
  uint64_t allocated(const WorkerProcess& worker) { return pool(worker).usage().allocated_bytes(); }
  // No reservation, no lease, and every invariant holds.
  void check_at_rest();

  const std::string& directory() const { return directory_.path(); }
  std::string path(const std::string& name) const { return directory() + "/" + name; }

 private:
  TemporaryDirectory directory_;
  const int exceptions_at_start_;

 public:
  ServerProcess server;

 private:
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
};

}  // namespace berth::testing
