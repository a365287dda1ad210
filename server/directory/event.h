// What the directory tells the world about a change, once it is durable: events for watchers, asks
// for workers. Handlers put them into the draft beside the mutations; the sequencer lets them out
// after install.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.h"
#include "server/directory/types.h"

namespace berth {

enum class EventKind : uint8_t {
  kServerStarted,
  kNamespaceOpened,
  kNamespaceQuotaSet,
  kSessionOpened,
  kSessionResumed,
  kSessionAttached,
  kSessionDetached,
  kSessionSilent,
  kSessionHeard,
  kSessionEnding,
  kSessionEnded,
  kSessionFenced,
  kPoolRegistered,
  kPoolClosing,
  kPoolGone,
  kPoolClosed,
  kPoolImported,
  kExportEnded,
  kReserved,
  kReady,
  kAborted,
  kRetiring,
  kPinned,
  kUnpinned,
  kPoolDraining,
  kPoolUndrained,
  kPoolDrained,
  kNamespaceEvicted,
  kEvictionSet,
  kFreed,
  kQuarantined,
  kDropped,
  kAdopted,
  kWriteOverdue,
  kLeaseTaken,
  kLeaseEnded,
  kLeaseRevoking,
  kReattachStarted,
  kReattachDone,
  kJobStarted,
  kJobDone,
};
std::string_view name_of(EventKind);

struct Event {
  EventKind kind = EventKind::kServerStarted;
  SessionId session;
  PoolId pool;
  ReplicaId replica;  // the first, where count covers several
  uint64_t count = 0;
  LeaseId lease;
  NamespaceId namespace_id;
  std::string reason;
};

// A request to one worker, sent over its Link. Nothing here frees anything: the answer does.
struct Ask {
  enum class Kind : uint8_t {
    kReclaim,
    kCancel,
    kRevoke,
    kClientFenced,
    kWorkerFenced,
    kDropImport
  };
  SessionId worker;
  Kind kind = Kind::kReclaim;
  SessionId client;
  OperationNumber operation = 0;
  LeaseId lease;
  std::vector<ReplicaId> replicas;
  PoolId pool{};
};

}  // namespace berth
