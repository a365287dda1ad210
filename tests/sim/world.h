// One seed's world: a server, workers, engines, a network and all that goes wrong between them;
// then the healing, after which everything must drain to zero.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/sim/engine.h"
#include "tests/sim/hub.h"
#include "tests/sim/worker.h"

namespace berth::sim {

struct RunOptions {
  uint64_t seed = 1;
  uint64_t steps = 300;
  bool trace = false;
  Plant plant = Plant::kNone;
};

struct RunResult {
  std::string failure;  // empty: every check held and everything drained
  uint64_t digest = 0;  // of everything that happened
  uint64_t commits = 0;
  uint64_t simulated_millis = 0;
  // Reads under an operator's fence that found other bytes: the only ones that may.
  uint64_t fenced_readers_saw_change = 0;
};

RunResult run(const RunOptions& options);
// Twice, and the digests must agree.
RunResult run_twice(const RunOptions& options);

class World {
 public:
  explicit World(const RunOptions& options);
  ~World();
  RunResult run();

 private:
  struct Host {
    std::string node;
    BootId boot;
    std::vector<size_t> workers;
  };

  void do_something();
  void do_deed(Deed deed);
  void do_engine_deed(Deed deed, Engine& engine);
  void crash_worker(size_t index);
  void reboot_host(Host& host);
  void start_worker(size_t index);
  void stop_server(Deed how);
  void start_server_later(int64_t after);
  void break_disk();
  void close_pool(size_t index);
  void let_some_time_pass(int64_t millis) { schedule_.run_until(schedule_.now() + millis); }

  // operator.cc
  bool do_operators_deed(Deed deed);  // false: it is not the operator's
  void command(Command command);
  void evict();
  void evict_chunks();
  void drain(bool back);
  void pin(bool off);
  void set_eviction();
  void fence_the_dead();
  void fence_the_living();
  PoolId some_pool();
  SessionId some_worker_session();
  std::string some_namespace();
  std::vector<Digest> some_digests(const std::string& name);

  // heal.cc
  void unpin_everything();
  void heal();
  void wind_up();
  std::string leftovers() const;
  std::string difference(const Worker& worker) const;
  std::string unshared() const;
  void evict_all();

  const RunOptions options_;
  Judge judge_;
  Random random_;
  Weather weather_;
  Schedule schedule_;
  LifeLocks locks_;
  Witness witness_;
  Server server_;
  Hub hub_;
  std::vector<Host> hosts_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Engine>> engines_;
  bool server_start_due_ = false;
};

}  // namespace berth::sim
