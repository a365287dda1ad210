// What the agent asks its shell to do, as values. The shell performs them in order, without holding
// the agent's lock, and reports what came of them as inputs (agent.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "berth/v1/directory.pb.h"
#include "berth/v1/worker.pb.h"
#include "common/error.h"
#include "common/ids.h"

namespace berth::worker {

// Names that the shell gives: a call of an engine that waits for an answer, an open Join stream.
using CallId = Id<struct EngineCall>;
using JoinId = Id<struct JoinStream>;
// One attempt to be attached, numbered by the agent: OpenSession, Reattach and Link of the attempt
// share it. Inputs that name an earlier connection are ignored.
using ConnectionId = Id<struct Connection>;

// ---- Towards berthd
// -------------------------------------------------------------------------------

struct CallOpenSession {
  ConnectionId connection;
  v1::OpenSessionRequest request;
};
struct OpenReattach {
  ConnectionId connection;
};
struct SendReattach {
  ConnectionId connection;
  v1::ReattachRequest message;
};
struct EndReattach {
  ConnectionId connection;  // no more messages from this side
};
struct OpenLink {
  ConnectionId connection;
};
// kSoon goes before everything that waits to be written: heartbeats.
enum class Urgency : uint8_t { kInOrder, kSoon };
struct SendLink {
  ConnectionId connection;
  v1::LinkRequest message;
  Urgency urgency = Urgency::kInOrder;
};
// Cancels whatever is open under this connection. No report is expected.
struct CloseConnection {
  ConnectionId connection;
};

// ---- Towards engines
// ------------------------------------------------------------------------------

using Reply = std::variant<v1::OpenNamespaceResponse, v1::ProbeResponse, v1::BeginStoreResponse,
                           v1::FinishStoreResponse, v1::AbortStoreResponse, v1::LoadResponse,
                           v1::WaitResponse, v1::WorkerRenewResponse, v1::WorkerReleaseResponse,
                           v1::LeaveResponse>;
// A call that has ended meanwhile is ignored by the shell.
struct Answer {
  CallId call;
  Result<Reply> reply;
};
// The client is attached. Whoever presents the ticket may fetch the life lock's descriptor and
// those of these pools (indexes into the configuration), in the welcome's order.
struct Welcome {
  JoinId join;
  SessionId client;
  v1::JoinWelcome message;
  std::vector<size_t> pools;
};
struct Push {
  JoinId join;
  v1::JoinResponse message;
};
struct EndJoin {
  JoinId join;
  Error error;
};

// ---- Towards the other workers of this host
// ---------------------------------------------------------------

// Names that the shell gives: a worker that connected to import from us, a pool that we were
// passed.
using PeerId = Id<struct PeerConnection>;
using ImportId = Id<struct ImportedDescriptor>;

// Who we are from now on, towards those that we import from. No session: end every connection, to
// them and from them.
struct Introduce {
  SessionId session;
  std::string store_id;
};
// Make a life lock for this pool of ours and report it with Agent::export_locked.
struct LockExport {
  PeerId peer;
  size_t pool_slot = 0;
};
// Pass that lock and the pool's read-only descriptor, and keep neither lock nor copy of it.
struct PassExport {
  PeerId peer;
  size_t pool_slot = 0;
  v1::SharedPool message;
};
// Nobody will receive it (any more): the file goes, unless it was passed.
struct DiscardLock {
  std::string life_name;
};
// Push this imported pool to the engine, and have its descriptors fetched with a fresh ticket.
struct GrantImport {
  JoinId join;
  SessionId client;
  ImportId import;
  v1::JoinPool pool;
};
// Close the descriptors of this imported pool, and forget the tickets for it.
struct DropImport {
  ImportId import;
};

// ---- The rest
// -------------------------------------------------------------------------------------

// Test this life lock in the runtime directory and report with Agent::life_tested.
struct TestLife {
  std::string life_name;
};
// This worker cannot go on, and a restart will not help: name in use, unsupported version, ...
struct Fatal {
  Error error;
};
// A decision worth a log line. Field names are fixed words.
struct Note {
  enum class Level : uint8_t { kInfo, kWarning };
  Level level = Level::kInfo;
  std::string event;
  std::vector<std::pair<std::string, std::string>> fields;
};

using Action =
    std::variant<CallOpenSession, OpenReattach, SendReattach, EndReattach, OpenLink, SendLink,
                 CloseConnection, Answer, Welcome, Push, EndJoin, Introduce, LockExport, PassExport,
                 DiscardLock, GrantImport, DropImport, TestLife, Fatal, Note>;

}  // namespace berth::worker
