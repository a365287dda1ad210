#include "server/directory/types.h"

namespace berth {

std::string_view name_of(Medium medium) {
  switch (medium) {
    case Medium::kCpu:
      return "cpu";
    case Medium::kCxl:
      return "cxl";
    case Medium::kSsd:
      return "ssd";
  }
  return "unknown";
}

std::string_view name_of(Scope scope) {
  switch (scope) {
    case Scope::kProcess:
      return "process";
    case Scope::kHost:
      return "host";
    case Scope::kDomain:
      return "domain";
  }
  return "unknown";
}

std::string_view name_of(ReplicaState state) {
  switch (state) {
    case ReplicaState::kReserved:
      return "reserved";
    case ReplicaState::kReady:
      return "ready";
    case ReplicaState::kRetiring:
      return "retiring";
    case ReplicaState::kQuarantined:
      return "quarantined";
  }
  return "unknown";
}

std::string_view name_of(StoreCode code) {
  switch (code) {
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
  return "unknown";
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
  }
  return "unknown";
}

std::string_view name_of(Why why) {
  switch (why) {
    case Why::kNone:
      return "";
    case Why::kEvicted:
      return "evicted";
    case Why::kPoolClosing:
      return "pool_closing";
    case Why::kWriterFenced:
      return "writer_fenced";
    case Why::kWriterAborted:
      return "writer_aborted";
    case Why::kWriteOverdue:
      return "write_overdue";
    case Why::kLedgerMismatch:
      return "ledger_mismatch";
    case Why::kOverQuota:
      return "over_quota";
    case Why::kMadeRoom:
      return "made_room";
    case Why::kMadeRoomInNamespace:
      return "made_room_in_namespace";
    case Why::kPoolDraining:
      return "pool_draining";
    case Why::kNamespaceEvicted:
      return "namespace_evicted";
    case Why::kPoolTrimmed:
      return "pool_trimmed";
  }
  return "unknown";
}

std::string_view name_of(PinKind kind) {
  switch (kind) {
    case PinKind::kSoft:
      return "soft";
    case PinKind::kHard:
      return "hard";
  }
  return "unknown";
}

}  // namespace berth
