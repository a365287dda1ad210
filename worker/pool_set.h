// The worker's pools: mapped and made real before anything is offered, in a thread of their own, so
// that the main loop keeps talking to the service manager while gigabytes are touched.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/error.h"
#include "worker/config.h"
#include "worker/pool/cpu_pool.h"
#include "worker/session/agent.h"

namespace berth::worker {

class PoolSet {
 public:
  // Maps every pool. Errors: as CpuPool::create().
  static Result<std::unique_ptr<PoolSet>> map(const WorkerConfig& config, const HostMemory& host);
  // Waits for the thread.
  ~PoolSet();
  PoolSet(const PoolSet&) = delete;
  PoolSet& operator=(const PoolSet&) = delete;

  // Begins to touch every page.
  void start_prefault(unsigned threads);
  void stop_prefault() { is_stopping_ = true; }
  struct Progress {
    uint64_t done_bytes = 0;
    uint64_t total_bytes = 0;
    bool is_over = false;
  };
  Progress progress() const;
  // Once progress().is_over. Errors: as CpuPool::prefault().
  Result<> outcome();

  // In the order of the configuration.
  std::vector<AgentPool> agent_pools() const;
  std::vector<int> descriptors() const;
  std::vector<std::string> warnings() const;
  Result<> publish(std::span<const WrittenSpan> spans);

 private:
  PoolSet() = default;
  void prefault(unsigned threads);

  std::vector<std::unique_ptr<pool::CpuPool>> pools_;
  uint64_t total_bytes_ = 0;
  std::atomic<uint64_t> done_before_{0};  // pools that are complete
  std::atomic<uint64_t> done_now_{0};     // of the pool at hand
  std::atomic<bool> is_stopping_{false};
  std::atomic<bool> is_over_{false};
  Result<> outcome_;  // written before is_over_
  std::thread thread_;
};

}  // namespace berth::worker
