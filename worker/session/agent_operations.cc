// Numbered operations of clients: a retry gets the answer of the first try.
#include "worker/session/agent_state.h"

namespace berth::worker {

Operation* AgentState::begin_operation(CallId call, Client& client, OperationNumber number,
                                       OperationKind kind, size_t content_hash, Time answer_by) {
  if (number <= client.low_water) {
    answer(call,
           refuse(Reason::kInvalidArgument, "operation = " + std::to_string(number) +
                                                ": must be above the client's low-water mark, " +
                                                std::to_string(client.low_water)));
    return nullptr;
  }
  const auto known = client.operations.find(number);
  if (known != client.operations.end()) {
    Operation& earlier = known->second;
    if (earlier.kind != kind || earlier.content_hash != content_hash) {
      answer(call, refuse(Reason::kOperationMismatch,
                          "operation " + std::to_string(number) + " was used with other content"));
    } else if (earlier.reply) {
      answer(call, *earlier.reply);
    } else if (earlier.waiters.size() >= options.waiters_per_operation_max) {
      answer(call, refuse(Reason::kOperationInFlight,
                          "operation " + std::to_string(number) + " has too many callers waiting"));
    } else {
      earlier.waiters.push_back({call, answer_by});
    }
    return nullptr;
  }
  // A finish ends what was granted under a number of its own, so it always finds room: as at the
  // server, a full window drains.
  const size_t room = size_t{limits.operations_max()} * (kind == OperationKind::kFinish ? 2 : 1);
  if (client.operations.size() >= room) {
    answer(call, refuse(Reason::kOperationWindowFull,
                        "this client has " + std::to_string(client.operations.size()) +
                            " operations above its low-water mark, the most that are kept"));
    return nullptr;
  }
  Operation& operation = client.operations[number];
  operation.kind = kind;
  operation.content_hash = content_hash;
  operation.waiters.push_back({call, answer_by});
  return &operation;
}

Operation* AgentState::find_unanswered(Client& client, OperationNumber number) {
  const auto found = client.operations.find(number);
  if (found == client.operations.end() || found->second.reply) return nullptr;
  return &found->second;
}

void AgentState::answer_operation(Operation& operation, Reply reply) {
  for (const Waiter& waiter : operation.waiters) answer(waiter.call, reply);
  operation.waiters.clear();
  operation.reply = std::move(reply);
}

void AgentState::refuse_operation(Client& client, OperationNumber number, const Error& error) {
  const auto found = client.operations.find(number);
  if (found == client.operations.end()) return;
  for (const Waiter& waiter : found->second.waiters) answer(waiter.call, tl::unexpected(error));
  client.operations.erase(found);
}

void AgentState::answer(CallId call, Result<Reply> reply) {
  actions.emplace_back(Answer{call, std::move(reply)});
}

}  // namespace berth::worker
