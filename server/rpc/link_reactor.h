// One Link: the conversation with one worker session.
//
//   hello ─▶ token and incarnation ─▶ claim in the link table ─▶ LinkUp ─▶ welcome
//   request ─▶ command ─▶ sequencer ─▶ answer ─┐
//   ask of the directory ──────────────────────┴▶ bounded queue ─▶ one write at a time
//   end (peer, server, newer Link, fence) ─▶ LinkDown once, Finish once
//
// Requests are submitted in the order they came; answers leave in the order they are ready.
//
// Lifetime: gRPC drives it and calls OnDone last; replies of the sequencer may come later, so the
// object is shared with them. After the end nothing is started any more.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <deque>
#include <memory>
#include <mutex>

#include "berth/v1/directory.grpc.pb.h"
#include "server/rpc/backend.h"

namespace berth::rpc {

// Of one message, where several asks were put together.
inline constexpr size_t kReclaimReplicasMax = 4096;

class LinkReactor final : public grpc::ServerBidiReactor<v1::LinkRequest, v1::LinkResponse>,
                          public Stream,
                          public Link,
                          public std::enable_shared_from_this<LinkReactor> {
 public:
  // Takes over the call, and counts its end. Never null: a refusal is the end of the returned one.
  static LinkReactor* start(Backend& backend, const CallMetrics::Method& calls,
                            grpc::CallbackServerContext& context);

  LinkReactor(Backend& backend, const CallMetrics::Method& calls,
              grpc::CallbackServerContext& context)
      : backend_(backend), calls_(calls), context_(context) {}

  void ask(const Ask& ask) override;
  void end_link(const Error& why) override { end(why); }
  void end(const Error& why) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  struct Asked {
    v1::LinkRequest::BodyCase kind;
    uint64_t correlation = 0;
    uint64_t heartbeat_sequence = 0;
    int64_t started_nanos = 0;
  };

  bool has_ended();
  void read_next();
  void introduce(const v1::LinkRequest& first);
  void welcome();
  void take(const v1::LinkRequest& request);
  void take_query(const v1::LinkRequest& request, const Asked& asked);
  void take_command(const v1::LinkRequest& request, const Asked& asked);
  void reply(const Asked& asked, const Result<Outcome>& outcome);
  void refuse_request(const Asked& asked, const Error& error);
  void answer_heartbeat(const Asked& asked, const Result<Outcome>& outcome);

  bool joins_last_reclaim(const Ask& ask);
  void push(v1::LinkResponse message);
  void write_front();  // under mutex_
  // What becomes of the write in flight: it may be waiting for a peer that does not read.
  enum class Pending : uint8_t { kWait, kCancel };
  void finish(const grpc::Status& status, Pending pending = Pending::kWait);
  void finish_call();  // under mutex_, once
  void link_down();

  Backend& backend_;
  const CallMetrics::Method& calls_;
  grpc::CallbackServerContext& context_;
  std::shared_ptr<LinkReactor> self_;  // until OnDone
  v1::LinkRequest request_;            // of the read in flight
  Caller caller_;                      // set by the hello, before anything else reads it
  bool is_introduced_ = false;         // of the reading thread

  std::mutex mutex_;  // guards everything below
  std::deque<v1::LinkResponse> queue_;
  v1::LinkResponse writing_;  // of the write in flight
  bool is_writing_ = false;
  bool is_up_ = false;  // LinkUp was submitted: LinkDown is due
  bool has_ended_ = false;
  // Its session is detached: the call may be finished.
  bool may_finish_ = false;
  grpc::Status end_status_;
  size_t unanswered_ = 0;
};

}  // namespace berth::rpc
