#include "worker/session/host.h"

namespace berth::worker {

void AgentHost::take_actions() {
  for (Action& action : agent_.take_actions()) waiting_.push_back(std::move(action));
}

void AgentHost::perform_waiting() {
  std::unique_lock lock(mutex_);
  if (is_performing_) return;
  is_performing_ = true;
  while (!waiting_.empty()) {
    std::deque<Action> batch = std::exchange(waiting_, {});
    lock.unlock();
    for (Action& action : batch) perform_(action);
    batch.clear();
    lock.lock();
  }
  is_performing_ = false;
}

std::vector<pool::LedgerUsage> AgentHost::usage() const {
  const std::lock_guard lock(mutex_);
  std::vector<pool::LedgerUsage> all;
  for (const PoolId pool : ledger_.pools()) all.push_back(*ledger_.usage(pool));
  return all;
}

}  // namespace berth::worker
