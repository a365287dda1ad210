#include "worker/local/call_table.h"

#include "common/rpc_status.h"

namespace berth::worker {

CallId CallTable::add(grpc::ServerUnaryReactor* reactor, Fill fill) {
  const std::lock_guard lock(mutex_);
  if (is_closed_ || waiting_.size() >= calls_max_) return {};
  const CallId call(++calls_made_);
  waiting_.emplace(call, Waiting{reactor, std::move(fill)});
  return call;
}

void CallTable::answer(Answer& answer) {
  Waiting waiting;
  {
    const std::lock_guard lock(mutex_);
    auto found = waiting_.extract(answer.call);
    if (found.empty()) return;
    waiting = std::move(found.mapped());
  }
  if (!answer.reply) return waiting.reactor->Finish(status_from_error(answer.reply.error()));
  waiting.fill(*answer.reply);
  waiting.reactor->Finish(grpc::Status::OK);
}

void CallTable::close(const Error& error) {
  std::unordered_map<CallId, Waiting> ended;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    ended.swap(waiting_);
  }
  for (auto& [call, waiting] : ended) waiting.reactor->Finish(status_from_error(error));
}

}  // namespace berth::worker
