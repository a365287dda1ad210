// One agent among many threads: inputs come from anywhere, one at a time, and the actions they lead
// to are performed in the agent's order, by whichever thread comes along, never under the lock.
//
// Time is what the main loop last said with tick(): nothing else here knows a clock.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "worker/pool/ledger.h"
#include "worker/session/agent.h"

namespace berth::worker {

class AgentHost {
 public:
  explicit AgentHost(AgentOptions options) : agent_(std::move(options), ledger_) {}

  // Performs one action. It may feed the agent again, and must not wait. Set before the first
  // input.
  using Perform = std::function<void(Action&)>;
  void set_perform(Perform perform) { perform_ = std::move(perform); }

  // input(agent, now)
  template <class Input>
  void feed(Input&& input) {
    {
      const std::lock_guard lock(mutex_);
      input(agent_, now_);
      take_actions();
    }
    perform_waiting();
  }
  void tick(Time now) {
    {
      const std::lock_guard lock(mutex_);
      now_ = now;
      agent_.tick(now);
      take_actions();
    }
    perform_waiting();
  }
  // query(agent), which changes nothing.
  template <class Query>
  auto ask(Query&& query) const {
    const std::lock_guard lock(mutex_);
    return query(agent_);
  }
  std::vector<pool::LedgerUsage> usage() const;

 private:
  void take_actions();  // with mutex_ held
  void perform_waiting();

  mutable std::mutex mutex_;  // guards everything but perform_
  pool::Ledger ledger_;
  Agent agent_;
  Time now_;
  std::deque<Action> waiting_;
  bool is_performing_ = false;  // some thread is at it and will come back for more
  Perform perform_;
};

}  // namespace berth::worker
