// One WatchEvents call: reads the event log page by page, and rests until there is more.
//
// The log tells it on the sequencer's thread that there is more; a reader that is slow only makes
// its own call fall behind, up to a gap. Lifetime: as LinkReactor.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <memory>
#include <mutex>

#include "berth/v1/admin.grpc.pb.h"
#include "server/rpc/backend.h"
#include "server/sequencer/event_log.h"

namespace berth::rpc {

// Events of one message.
inline constexpr size_t kEventsPerMessageMax = 512;

class WatchReactor final : public grpc::ServerWriteReactor<v1::WatchEventsResponse>,
                           public Stream,
                           public EventWatcher,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  // Takes over the call. Never null.
  static WatchReactor* start(Backend& backend, const v1::WatchEventsRequest& request);

  WatchReactor(Backend& backend, const v1::WatchEventsRequest& request);

  void end(const Error& why) override;
  void on_events() override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  // Sends the next page, if there is one. One thread at a time is in it.
  void pump();
  // Under mutex_.
  void write(const EventLog::Page& page);
  void finish(const grpc::Status& status);

  Backend& backend_;
  std::shared_ptr<WatchReactor> self_;  // until OnDone
  const bool stops_at_end_;

  std::mutex mutex_;  // guards everything below
  Epoch epoch_ = 0;
  uint64_t from_ = 0;
  bool is_busy_ = false;  // somebody reads the log, or a write is in flight
  bool is_writing_ = false;
  bool has_more_ = false;  // the log said so meanwhile
  bool has_ended_ = false;
  grpc::Status end_status_;
  v1::WatchEventsResponse response_;
};

}  // namespace berth::rpc
