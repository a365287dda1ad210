// berthd as far as one worker needs it, played at the agent's actions: sessions, pools, grants in
// one pool, commits, and leases on whatever was committed. No network on that side; everything
// between engine and agent is real.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "worker/session/host.h"

namespace berth::worker {

class FakeServer {
 public:
  explicit FakeServer(AgentHost& host) : host_(host) {}

  // Whether the action was one for a server.
  bool perform(Action& action);

  std::set<uint64_t> fenced() const {
    const std::lock_guard lock(mutex_);
    return fenced_;
  }
  std::set<uint64_t> closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  void answer(const SendLink& action);
  void reserve(const v1::ReserveRequest& request, v1::ReserveResponse* response);
  void acquire(const v1::AcquireRequest& request, v1::AcquireResponse* response);

  struct Ready {
    uint64_t replica;
    uint64_t offset;
    uint64_t size;
  };

  AgentHost& host_;
  mutable std::mutex mutex_;  // guards what follows
  uint64_t next_id_ = 100;
  uint64_t pool_ = 0;
  std::map<uint64_t, std::pair<std::string, uint64_t>> reserved_;  // replica: digest, size
  std::map<std::string, Ready> ready_;                             // by digest
  std::set<uint64_t> fenced_;
  std::set<uint64_t> closed_;
};

}  // namespace berth::worker
