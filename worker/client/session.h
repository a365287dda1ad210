// What one client session has going on: numbered operations, open stores and handles, and what it
// still owes the worker (releases, aborts, operations whose outcome is unknown). It outlives a
// join: a resumed session keeps all of it; a session that is not resumed takes it along when it is
// dropped, because the server ended everything it had.
//
// A cancel or revoke may overtake the answer that it concerns: an operation in flight is then
// poisoned, and whoever sees its answer gives the result back instead of handing it out.
//
// Pure bookkeeping, guarded by Core::mutex_.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "berth/v1/worker.pb.h"
#include "common/ids.h"
#include "worker/client/operations.h"

namespace berth::client {

// Set once, when what it belongs to must no longer be used. Shared with the handle or store in the
// user's hands.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

// An operation that nobody waits for any more. It is repeated under its number until it is
// answered, and what it turns out to have granted is given back. A finish that landed stays.
struct UnsettledOperation {
  OperationNumber number = 0;
  std::variant<v1::BeginStoreRequest, v1::LoadRequest, v1::FinishStoreRequest> request;
};

enum class Answer : uint8_t { kGood, kPoisoned };

class Session {
 public:
  Session(SessionId id, std::string token, size_t operations_max)
      : id_(id), token_(std::move(token)), operations_(operations_max) {}

  SessionId id() const { return id_; }
  const std::string& token() const { return token_; }  // the join thread's
  void resume(std::string token, OperationNumber used);
  OperationNumber low_water() const { return operations_.low_water(); }

  // None while the window is full.
  std::optional<OperationNumber> start_operation();
  // The answer was seen; kPoisoned: give back what it granted.
  Answer answer_operation(OperationNumber number);
  // Nobody waits for the answer any more.
  void abandon_operation(UnsettledOperation operation);
  void settle_abandoned(OperationNumber number);

  void hold_store(OperationNumber begun, StopFlag cancelled) {
    stores_[begun] = std::move(cancelled);
  }
  void drop_store(OperationNumber begun) { stores_.erase(begun); }
  void hold_load(uint64_t handle, StopFlag revoked) { loads_[handle] = std::move(revoked); }
  void drop_load(uint64_t handle) { loads_.erase(handle); }

  // The server asks to stop. Whether there was anything to stop; an unknown number was finished
  // before.
  bool cancel(OperationNumber begun);
  bool revoke(OperationNumber operation, uint64_t handle);

  // Something is in the user's hands.
  bool has_holders() const { return !stores_.empty() || !loads_.empty(); }
  size_t stores_out() const { return stores_.size(); }
  // Releases that were not confirmed count as handles still out.
  size_t loads_out() const { return loads_.size() + releases.size(); }

  bool owes_release(uint64_t handle) const;

  // Owed to the worker; emptied as it confirms.
  std::deque<uint64_t> releases;  // handles
  std::deque<uint64_t> aborts;    // replicas
  std::deque<UnsettledOperation> unsettled;

 private:
  bool poison(OperationNumber number);

  SessionId id_;
  std::string token_;
  OperationWindow operations_;
  std::map<OperationNumber, bool> in_flight_;  // value: poisoned
  std::map<OperationNumber, StopFlag> stores_;
  std::map<uint64_t, StopFlag> loads_;
};

}  // namespace berth::client
