#include "worker/client/call.h"

#include "common/rpc_status.h"

namespace berth::client {

CallOutcome outcome_of(const grpc::Status& status) {
  if (status.ok()) return {};
  const bool is_peers_own = !status.error_details().empty();
  if (is_peers_own) return {CallEnd::kRefused, error_from_status(status)};
  switch (status.error_code()) {  // the transport speaks
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
      return {CallEnd::kSilent, error_from_status(status)};
    default:
      return {CallEnd::kRefused, error_from_status(status)};
  }
}

Refusal refusal_of(Reason reason) {
  switch (reason) {
    case Reason::kRejoin:
      return Refusal::kRejoin;
    case Reason::kUnknownSession:
    case Reason::kSessionFenced:
    case Reason::kWrongToken:
      return Refusal::kSessionOver;
    case Reason::kOperationInFlight:
    case Reason::kOperationWindowFull:
    case Reason::kQueueFull:
      return Refusal::kBusy;
    case Reason::kUnavailable:
    case Reason::kDeadlineExceeded:
    case Reason::kCancelled:
    case Reason::kStaleIncarnation:
    case Reason::kStaleEpoch:
    case Reason::kStoreDegraded:
    case Reason::kIoError:
      return Refusal::kOutcomeUnknown;
    case Reason::kReattaching:
      return Refusal::kOutage;
    default:
      return Refusal::kFinal;
  }
}

bool is_outcome_unknown(const CallOutcome& outcome) {
  if (outcome.end == CallEnd::kSilent) return true;
  if (outcome.end == CallEnd::kAnswered) return false;
  // A refused repeat says nothing about the first try, which the same join sent.
  const Refusal refusal = refusal_of(outcome.error.reason);
  return refusal == Refusal::kOutcomeUnknown || refusal == Refusal::kRejoin ||
         outcome.error.reason == Reason::kOperationInFlight;
}

}  // namespace berth::client
