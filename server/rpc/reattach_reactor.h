// One Reattach stream: a worker states its ledger, and each chunk is judged before the next is
// read.
//
//   hello ─▶ BeginReattach ─▶ welcome     chunk ─▶ ReconcileChunk ─▶ verdicts
//   end ─▶ EndReattach, again while there is more to drop ─▶ done
//
// At most one thing is under way at any time (a read, a command, a write), so the stream bounds
// itself. Lifetime: as LinkReactor.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <mutex>

#include "berth/v1/directory.grpc.pb.h"
#include "server/rpc/backend.h"

namespace berth::rpc {

class ReattachReactor final
    : public grpc::ServerBidiReactor<v1::ReattachRequest, v1::ReattachResponse>,
      public Stream,
      public std::enable_shared_from_this<ReattachReactor> {
 public:
  // Takes over the call. Never null.
  static ReattachReactor* start(Backend& backend);

  explicit ReattachReactor(Backend& backend) : backend_(backend) {}

  void end(const Error& why) override;

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  bool has_ended();
  void read_next();
  Result<Command> next_command();
  Result<Command> begin();
  void submit(Command command);
  void take(const Outcome& outcome);
  void write(v1::ReattachResponse message);
  void finish(const grpc::Status& status);

  Backend& backend_;
  std::shared_ptr<ReattachReactor> self_;  // until OnDone

  // Of whichever thread has the one thing under way.
  v1::ReattachRequest request_;
  v1::ReattachResponse response_;
  Caller caller_;
  EndReattach ending_;
  bool is_foreign_store_ = false;
  bool is_over_ = false;  // the response in flight is the last

  std::mutex mutex_;  // guards everything below
  bool is_writing_ = false;
  bool has_ended_ = false;
  grpc::Status end_status_;
};

}  // namespace berth::rpc
