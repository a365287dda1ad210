// What is behind a simulated worker while its process lives: the agent and its ledger, the memory,
// and the shell's open ends. Internal to tests/sim/worker*.cc.
#pragma once

#include <algorithm>
#include <set>

#include "tests/sim/worker.h"

namespace berth::sim {

struct Worker::Process {
  explicit Process(worker::AgentOptions options) : agent(std::move(options), ledger) {}

  struct PendingJoin {
    Engine* engine;
    uint64_t engine_run;
    std::string life_name;
    bool is_welcome = false;  // the life lock was passed on
    int64_t pushed_until = 0;
    // Its stream keeps the order of what is pushed.
    int64_t push_delay(const Hub& hub) {
      const int64_t now = hub.schedule.now();
      pushed_until = std::max(pushed_until, now + hub.random.between(0, 2));
      return pushed_until - now;
    }
  };

  uint64_t number = 0;
  ProcessKey key = 0;
  pool::Ledger ledger;
  worker::Agent agent;
  Scheduling scheduling;
  std::vector<std::shared_ptr<Pages>> memory;  // one a configured pool
  std::map<std::shared_ptr<Stream>, worker::ConnectionId, Stream::Earlier> connections;
  std::shared_ptr<Stream> reattach;
  std::shared_ptr<Stream> link;
  std::map<worker::CallId, Answered> calls;
  std::map<worker::JoinId, PendingJoin> joins;
  uint64_t calls_made = 0;
  uint64_t joins_made = 0;

  // Connections between workers of one host, by a number that both ends know.
  struct Incoming {
    worker::PeerId id;  // none before its hello was read
    Worker* importer;
  };
  struct Outgoing {
    Worker* owner;
    std::vector<worker::ImportId> imports;
  };
  worker::Introduce identity;  // as the agent wants it
  bool ends_all = false;       // asked for since
  worker::Introduce known_as;  // as the connections were made
  std::map<uint64_t, Incoming> incoming;
  std::map<uint64_t, Outgoing> outgoing;
  std::map<worker::ImportId, ImportedPool> imports;
  std::set<std::string> export_locks;  // made, and neither passed nor discarded
  uint64_t peers_made = 0;
  uint64_t imports_made = 0;
  std::set<std::string> passed_locks;
  int64_t soon_until = 0;  // one thread does it all, in order
};

}  // namespace berth::sim
