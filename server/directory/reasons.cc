#include "server/directory/reasons.h"

namespace berth {

WhyRow row_of(Why why) {
  constexpr ReplicaState kRetiring = ReplicaState::kRetiring;
  constexpr ReplicaState kQuarantined = ReplicaState::kQuarantined;
  switch (why) {
    case Why::kNone:
      break;
    case Why::kEvicted:
      return {why, kRetiring, "operator", "an operator named it (`berthctl evict`)"};
    case Why::kPoolClosing:
      return {why, kRetiring, "worker", "its worker closes its pool"};
    case Why::kWriterFenced:
      return {why, kRetiring, "proof", "its writer is proven dead; the owner gives the pages back"};
    case Why::kWriterAborted:
      return {why, kRetiring, "writer", "given up by its writer, in a pool of another worker"};
    case Why::kWriteOverdue:
      return {why, kQuarantined, "time",
              "the write took too long; the writer was asked to stop and has not answered"};
    case Why::kLedgerMismatch:
      return {why, kQuarantined, "re-attach",
              "directory and worker name different bytes under one id"};
    case Why::kOverQuota:
      return {why, kRetiring, "re-attach",
              "adopted past a budget or quota, or as a second copy in one pool"};
    case Why::kMadeRoom:
      return {why, kRetiring, "policy",
              "its pool was past the high watermark, or a store found no room"};
    case Why::kMadeRoomInNamespace:
      return {why, kRetiring, "policy", "its namespace was near its quota"};
    case Why::kPoolDraining:
      return {why, kRetiring, "operator", "its pool is drained (`berthctl drain`)"};
    case Why::kNamespaceEvicted:
      return {why, kRetiring, "operator", "its namespace was evicted"};
    case Why::kPoolTrimmed:
      return {why, kRetiring, "policy", "an operator asked its pool to shrink"};
  }
  return {why, kRetiring, "", ""};
}

}  // namespace berth
