#include "worker/client/operations.h"

#include <algorithm>

#include "common/check.h"

namespace berth::client {

std::optional<OperationNumber> OperationWindow::take() {
  if (last_ - low_water() >= span_max_) return std::nullopt;
  open_.insert(++last_);
  return last_;
}

void OperationWindow::settle(OperationNumber number) {
  const bool was_open = open_.erase(number) == 1;
  BERTH_CHECK(was_open, "an operation number is settled once");
}

void OperationWindow::skip_used(OperationNumber used) { last_ = std::max(last_, used); }

OperationNumber OperationWindow::low_water() const {
  return open_.empty() ? last_ : *open_.begin() - 1;
}

}  // namespace berth::client
