// What one run found: the first thing that went wrong, a digest of all that happened, and, when
// asked for, the story.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "tests/sim/random.h"

namespace berth::sim {

class Judge {
 public:
  explicit Judge(bool tracing) : tracing_(tracing) {}

  void at(int64_t millis) { millis_ = millis; }
  void fail(std::string what) {
    if (failed()) return;
    failure_ = std::move(what);
    if (tracing_)
      std::printf("%8lld  FAILED: %s\n", static_cast<long long>(millis_), failure_.c_str());
  }
  // `what` makes the text, only when it is needed.
  template <class What>
  void expect(bool holds, What what) {
    if (!holds) fail(what());
  }
  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

  // What an operator's word allowed: no failure, but told.
  void note_fenced_reader_saw_change() { ++fenced_readers_saw_change_; }
  uint64_t fenced_readers_saw_change() const { return fenced_readers_saw_change_; }

  // Every decision of the run goes into the digest: the same seed twice gives the same one.
  void digest(uint64_t a, uint64_t b = 0) { digest_ = mix(digest_ ^ a, b); }
  uint64_t digest_value() const { return digest_; }

  template <class What>
  void trace(What what) {
    if (!tracing_) return;
    const std::string text = what();
    std::printf("%8lld  %s\n", static_cast<long long>(millis_), text.c_str());
  }

 private:
  const bool tracing_;
  int64_t millis_ = 0;
  uint64_t digest_ = 0;
  uint64_t fenced_readers_saw_change_ = 0;
  std::string failure_;
};

}  // namespace berth::sim
