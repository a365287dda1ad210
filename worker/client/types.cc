#include "worker/client/types.h"

namespace berth::client {

std::string_view name_of(StoreCode code) {
  switch (code) {
    case StoreCode::kUnspecified:
      break;
    case StoreCode::kGranted:
      return "granted";
    case StoreCode::kAlreadyPresent:
      return "already_present";
    case StoreCode::kBeingWritten:
      return "being_written";
    case StoreCode::kSkippedPoolFull:
      return "skipped_pool_full";
    case StoreCode::kSkippedNoPool:
      return "skipped_no_pool";
    case StoreCode::kSkippedNamespaceQuota:
      return "skipped_namespace_quota";
    case StoreCode::kSkippedTooLarge:
      return "skipped_too_large";
    case StoreCode::kSkippedNoHole:
      return "skipped_no_hole";
    case StoreCode::kSkippedDropped:
      return "skipped_dropped";
    case StoreCode::kSkippedUnavailable:
      return "skipped_unavailable";
    case StoreCode::kSkippedCancelled:
      return "skipped_cancelled";
    case StoreCode::kSkippedSessionLimit:
      return "skipped_session_limit";
  }
  return "unspecified";
}

std::string_view name_of(CommitCode code) {
  switch (code) {
    case CommitCode::kUnspecified:
      break;
    case CommitCode::kCommitted:
      return "committed";
    case CommitCode::kClosed:
      return "closed";
    case CommitCode::kUnknown:
      return "unknown";
    case CommitCode::kUnavailable:
      return "unavailable";
  }
  return "unspecified";
}

std::string_view name_of(ChunkClass chunk_class) {
  switch (chunk_class) {
    case ChunkClass::kUnspecified:
      break;
    case ChunkClass::kMiss:
      return "miss";
    case ChunkClass::kL1Local:
      return "l1_local";
    case ChunkClass::kL1Shared:
      return "l1_shared";
    case ChunkClass::kRestorable:
      return "restorable";
    case ChunkClass::kPending:
      return "pending";
  }
  return "unspecified";
}

std::string_view name_of(MissReason reason) {
  switch (reason) {
    case MissReason::kNone:
      return "none";
    case MissReason::kNotPresent:
      return "not_present";
    case MissReason::kIncomplete:
      return "incomplete";
    case MissReason::kBeingWritten:
      return "being_written";
    case MissReason::kNotAccessible:
      return "not_accessible";
    case MissReason::kOwnerSilent:
      return "owner_silent";
    case MissReason::kUnverified:
      return "unverified";
    case MissReason::kRetiring:
      return "retiring";
    case MissReason::kQuarantined:
      return "quarantined";
    case MissReason::kStoreDegraded:
      return "store_degraded";
    case MissReason::kUnavailable:
      return "unavailable";
  }
  return "unspecified";
}

}  // namespace berth::client
