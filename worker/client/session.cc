#include "worker/client/session.h"

#include <algorithm>

#include "common/check.h"

namespace berth::client {

void Session::resume(std::string token, OperationNumber used) {
  token_ = std::move(token);
  operations_.skip_used(used);
}

std::optional<OperationNumber> Session::start_operation() {
  const std::optional<OperationNumber> number = operations_.take();
  if (number) in_flight_[*number] = false;
  return number;
}

Answer Session::answer_operation(OperationNumber number) {
  const auto found = in_flight_.find(number);
  BERTH_CHECK(found != in_flight_.end(), "an answered operation was in flight");
  const Answer answer = found->second ? Answer::kPoisoned : Answer::kGood;
  in_flight_.erase(found);
  operations_.settle(number);
  return answer;
}

void Session::abandon_operation(UnsettledOperation operation) {
  in_flight_.erase(operation.number);
  unsettled.push_back(std::move(operation));
}

void Session::settle_abandoned(OperationNumber number) {
  std::erase_if(unsettled, [number](const auto& operation) { return operation.number == number; });
  operations_.settle(number);
}

bool Session::cancel(OperationNumber begun) {
  const auto store = stores_.find(begun);
  if (store == stores_.end()) return poison(begun);
  store->second->store(true, std::memory_order_release);
  return true;
}

bool Session::revoke(OperationNumber operation, uint64_t handle) {
  const auto load = loads_.find(handle);
  if (load == loads_.end()) return poison(operation);
  load->second->store(true, std::memory_order_release);
  return true;
}

bool Session::owes_release(uint64_t handle) const {
  return std::find(releases.begin(), releases.end(), handle) != releases.end();
}

bool Session::poison(OperationNumber number) {
  const auto found = in_flight_.find(number);
  if (found == in_flight_.end()) return false;
  found->second = true;
  return true;
}

}  // namespace berth::client
