#include "server/rpc/stream_table.h"

#include <string>
#include <vector>

namespace berth::rpc {

Result<> StreamTable::admit(const std::shared_ptr<Stream>& stream) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return refuse(Reason::kUnavailable, "the server is stopping");
  if (streams_.size() >= streams_max_)
    return refuse(Reason::kLimitReached, "there are " + std::to_string(streams_max_) +
                                             " open streams, as many as limits.streams_max allows");
  streams_.emplace(stream.get(), stream);
  return {};
}

void StreamTable::forget(const Stream* stream) {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}

void StreamTable::end_all(const Error& why) {
  std::vector<std::shared_ptr<Stream>> open;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [key, stream] : streams_)
      if (auto alive = stream.lock()) open.push_back(std::move(alive));
  }
  for (const auto& stream : open) stream->end(why);
}

size_t StreamTable::size() const {
  const std::lock_guard lock(mutex_);
  return streams_.size();
}

}  // namespace berth::rpc
