#include "worker/client/breaker.h"

#include <algorithm>

namespace berth::client {

Duration jittered(Duration bound, double chance) {
  const auto half = static_cast<double>(bound.millis) / 2;
  return {static_cast<int64_t>(half + half * chance)};
}

Breaker::Admission Breaker::admit(Time now) {
  if (!open_) return Admission::kPass;
  if (trial_out_ || now < trial_at_) return Admission::kRefuse;
  trial_out_ = true;
  return Admission::kTrial;
}

void Breaker::succeeded() {
  open_ = false;
  trial_out_ = false;
  failures_ = 0;
  open_for_ = {0};
}

void Breaker::failed(Admission admission, Time now, double chance) {
  if (admission == Admission::kTrial) trial_out_ = false;
  if (open_ && admission == Admission::kPass) return;  // sent before it opened: nothing new
  ++failures_;
  if (open_ || failures_ >= options_.failures_max) open(now, chance);
}

void Breaker::open(Time now, double chance) {
  if (!open_) ++opened_count_;
  open_ = true;
  open_for_ = std::clamp(open_for_ * 2, options_.open_for_min, options_.open_for_max);
  trial_at_ = now + jittered(open_for_, chance);
}

}  // namespace berth::client
