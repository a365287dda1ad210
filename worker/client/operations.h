// The operation numbers of one client session. A number is open from take() until settle(), which
// says that its answer was seen and that it will never be asked for again; the low-water mark,
// which the server uses to forget answers, is the highest number with nothing open at or below it.
// Pure; not thread-safe.
//
//   take 1, 2, 3; settle 1 and 3      low water 1: number 2 may still be repeated
//   settle 2                          low water 3
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "common/ids.h"

namespace berth::client {

class OperationWindow {
 public:
  // At most `span_max` numbers above the low-water mark: what the server agreed to keep answers
  // for.
  explicit OperationWindow(size_t span_max) : span_max_(span_max) {}

  // The next number; none while the window is full.
  std::optional<OperationNumber> take();
  // Settling a number that is not open is a bug.
  void settle(OperationNumber number);

  // The session was resumed: numbers up to `used` were used before, by whatever process.
  void skip_used(OperationNumber used);

  OperationNumber low_water() const;
  size_t open_count() const { return open_.size(); }

 private:
  size_t span_max_;
  OperationNumber last_ = 0;
  std::set<OperationNumber> open_;
};

}  // namespace berth::client
