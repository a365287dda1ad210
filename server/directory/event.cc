#include "server/directory/event.h"

namespace berth {

std::string_view name_of(EventKind kind) {
  switch (kind) {
    case EventKind::kServerStarted:
      return "server_started";
    case EventKind::kNamespaceOpened:
      return "namespace_opened";
    case EventKind::kNamespaceQuotaSet:
      return "namespace_quota_set";
    case EventKind::kSessionOpened:
      return "session_opened";
    case EventKind::kSessionResumed:
      return "session_resumed";
    case EventKind::kSessionAttached:
      return "session_attached";
    case EventKind::kSessionDetached:
      return "session_detached";
    case EventKind::kSessionSilent:
      return "session_silent";
    case EventKind::kSessionHeard:
      return "session_heard";
    case EventKind::kSessionEnding:
      return "session_ending";
    case EventKind::kSessionEnded:
      return "session_ended";
    case EventKind::kSessionFenced:
      return "session_fenced";
    case EventKind::kPoolRegistered:
      return "pool_registered";
    case EventKind::kPoolClosing:
      return "pool_closing";
    case EventKind::kPoolGone:
      return "pool_gone";
    case EventKind::kPoolClosed:
      return "pool_closed";
    case EventKind::kPoolImported:
      return "pool_imported";
    case EventKind::kExportEnded:
      return "export_ended";
    case EventKind::kReserved:
      return "reserved";
    case EventKind::kReady:
      return "ready";
    case EventKind::kAborted:
      return "aborted";
    case EventKind::kRetiring:
      return "retiring";
    case EventKind::kPinned:
      return "pinned";
    case EventKind::kUnpinned:
      return "unpinned";
    case EventKind::kPoolDraining:
      return "pool_draining";
    case EventKind::kPoolUndrained:
      return "pool_undrained";
    case EventKind::kPoolDrained:
      return "pool_drained";
    case EventKind::kNamespaceEvicted:
      return "namespace_evicted";
    case EventKind::kEvictionSet:
      return "eviction_set";
    case EventKind::kFreed:
      return "freed";
    case EventKind::kQuarantined:
      return "quarantined";
    case EventKind::kDropped:
      return "dropped";
    case EventKind::kAdopted:
      return "adopted";
    case EventKind::kWriteOverdue:
      return "write_overdue";
    case EventKind::kLeaseTaken:
      return "lease_taken";
    case EventKind::kLeaseEnded:
      return "lease_ended";
    case EventKind::kLeaseRevoking:
      return "lease_revoking";
    case EventKind::kReattachStarted:
      return "reattach_started";
    case EventKind::kReattachDone:
      return "reattach_done";
    case EventKind::kJobStarted:
      return "job_started";
    case EventKind::kJobDone:
      return "job_done";
  }
  return "unknown";
}

}  // namespace berth
