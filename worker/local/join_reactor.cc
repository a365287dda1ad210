#include "worker/local/join_reactor.h"

#include "common/rpc_status.h"

namespace berth::worker {

// Under the mutex, so that a sanitizer sees what gRPC orders: a read is done after it began.
void JoinReactor::read_next() {
  const std::lock_guard lock(mutex_);
  if (!is_over_) StartRead(&request_);
}

bool JoinReactor::is_over() {
  const std::lock_guard lock(mutex_);
  return is_over_;
}

void JoinReactor::OnReadDone(bool ok) {
  if (!ok) return finish(grpc::Status::OK, Unwritten::kDrop);
  if (!is_over() && take(request_)) read_next();
}

bool JoinReactor::take(const v1::JoinRequest& request) {
  if (request.has_hello() == is_greeted_) {
    end({Reason::kInvalidArgument, "body: accepted is one hello, as the first message"});
    return false;
  }
  if (request.has_poisoned()) listener_.poisoned(join_, request.poisoned().operation());
  if (!request.has_hello()) return true;
  is_greeted_ = true;
  const Result<> greeted = listener_.greeted(join_, request.hello());
  if (!greeted) end(greeted.error());
  if (!is_over()) return true;
  listener_.ended(join_);
  return false;
}

void JoinReactor::write(v1::JoinResponse message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    if (queue_.size() < kJoinQueueMax) {
      queue_.push_back(std::move(message));
      return write_next();
    }
  }
  finish(status_from_error({Reason::kLimitReached, "the client does not read its Join stream"}),
         Unwritten::kDrop);
}

void JoinReactor::write_next() {
  if (is_writing_) return;
  if (!queue_.empty()) {
    is_writing_ = true;
    response_ = std::move(queue_.front());
    queue_.pop_front();
    StartWrite(&response_);
  } else if (is_over_) {
    Finish(status_);
  }
}

void JoinReactor::OnWriteDone(bool ok) {
  if (!ok) finish(grpc::Status::CANCELLED, Unwritten::kDrop);
  const std::lock_guard lock(mutex_);
  is_writing_ = false;
  if (!ok) queue_.clear();
  write_next();
}

void JoinReactor::end(const Error& error) { finish(status_from_error(error), Unwritten::kWrite); }

void JoinReactor::finish(const grpc::Status& status, Unwritten unwritten) {
  {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    is_over_ = true;
    status_ = status;
    if (unwritten == Unwritten::kDrop) queue_.clear();
    write_next();
  }
  listener_.ended(join_);
}

void JoinReactor::OnCancel() { finish(grpc::Status::CANCELLED, Unwritten::kDrop); }

void JoinReactor::OnDone() {
  // Whoever finished the call, on whatever thread, has let go of it.
  { const std::lock_guard lock(mutex_); }
  listener_.done(join_);
}

}  // namespace berth::worker
