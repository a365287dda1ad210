// Every stream that is open, so that the server can end them all when it stops, and so that their
// number is bounded. A stream that a peer keeps open would otherwise hold the stop for ever.
//
// Thread-safe. The table holds streams weakly.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "common/error.h"

namespace berth::rpc {

class Stream {
 public:
  virtual ~Stream() = default;
  // Ends the stream with this refusal. Does nothing when it has ended already; never waits.
  virtual void end(const Error& why) = 0;
};

class StreamTable {
 public:
  explicit StreamTable(size_t streams_max) : streams_max_(streams_max) {}

  // Errors: limit_reached; unavailable once the server stops.
  Result<> admit(const std::shared_ptr<Stream>& stream);
  void forget(const Stream* stream);

  // Ends every stream, and refuses those that come later.
  void end_all(const Error& why);

  size_t size() const;

 private:
  const size_t streams_max_;
  mutable std::mutex mutex_;  // guards everything below
  std::map<const Stream*, std::weak_ptr<Stream>> streams_;
  bool stopping_ = false;
};

}  // namespace berth::rpc
