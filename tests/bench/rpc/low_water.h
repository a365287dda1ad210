// The operation numbers of one client session, and up to where all of them are answered: what a
// heartbeat tells the server so that it may forget their answers.
#pragma once

#include <cstdint>
#include <deque>

#include "common/check.h"

namespace berth::bench {

class LowWater {
 public:
  uint64_t take() {
    is_answered_.push_back(false);
    return low_ + is_answered_.size();
  }
  void answered(uint64_t operation) {
    BERTH_CHECK(operation > low_ && operation - low_ <= is_answered_.size(),
                "an operation is answered once");
    is_answered_[operation - low_ - 1] = true;
    for (; !is_answered_.empty() && is_answered_.front(); is_answered_.pop_front()) ++low_;
  }
  // Every operation up to and including this one is answered.
  uint64_t low() const { return low_; }

 private:
  uint64_t low_ = 0;
  std::deque<bool> is_answered_;  // of low_ + 1 and on
};

}  // namespace berth::bench
