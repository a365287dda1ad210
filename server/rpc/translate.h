// The protocol as commands of the directory, and outcomes as answers. Pure: a request is read
// against the installed records, which the caller's view holds, and nothing is changed or decided.
//
// Unary calls, Link and the simulator all come through here, so a request means the same on each.
// Errors of to_command(): invalid_argument naming the field, the value and the accepted form;
// unknown_namespace; unsupported_version.
#pragma once

#include "berth/v1/directory.pb.h"
#include "common/error.h"
#include "server/directory/commands.h"
#include "server/directory/config.h"
#include "server/directory/directory.h"
#include "server/directory/event.h"
#include "server/directory/queries.h"
#include "server/rpc/protocol_version.h"

namespace berth::rpc {

// What a request is read against.
struct RequestContext {
  const Directory& directory;
  const DirectoryConfig& config;
  Caller caller;      // who sent it; its token was checked
  Token fresh_token;  // chance, for a session that may be opened
  ProtocolRange speaks = kProtocolSpoken;
};

// ---- Bounds that no configuration changes ------------------------------------------------------

// Chunks times shards times parts of one Probe or Acquire: an answer stays within one gRPC message.
inline constexpr size_t kLocationsMax = 65'536;
inline constexpr size_t kAccessDomainsMax = 64;
inline constexpr size_t kWriteOrderMax = 64;
inline constexpr size_t kLedgerRowsMax = 4096;
inline constexpr size_t kHeldLeasesMax = 4096;
inline constexpr size_t kNamespaceTextLengthMax = 256;
inline constexpr size_t kLifeNameLengthMax = 128;
// Larger sums of bytes would not be of this world, and could overflow.
inline constexpr uint64_t kBytesMax = uint64_t{1} << 50;

// ---- Requests
// ------------------------------------------------------------------------------------

// Everything that changes something. Not for Probe, Resolve and LinkHello, see is_query().
Result<Command> to_command(const v1::LinkRequest& request, const RequestContext& context);

Result<OpenNamespace> to_command(const v1::OpenNamespaceRequest&, const RequestContext&);
Result<Command> to_command(const v1::OpenSessionRequest&, const RequestContext&);
Result<Heartbeat> to_command(const v1::Heartbeat&, const RequestContext&);
Result<RegisterPool> to_command(const v1::RegisterPoolRequest&, const RequestContext&);
Result<ClosePool> to_command(const v1::ClosePoolRequest&, const RequestContext&);
Result<ExportPool> to_command(const v1::ExportPoolRequest&, const RequestContext&);
Result<ImportPool> to_command(const v1::ImportPoolRequest&, const RequestContext&);
Result<EndExports> to_command(const v1::EndExportsRequest&, const RequestContext&);
Result<Reserve> to_command(const v1::ReserveRequest&, const RequestContext&);
Result<Commit> to_command(const v1::CommitRequest&, const RequestContext&);
Result<Abort> to_command(const v1::AbortRequest&, const RequestContext&);
Result<ReclaimAck> to_command(const v1::ReclaimAck&, const RequestContext&);
Result<Acquire> to_command(const v1::AcquireRequest&, const RequestContext&);
Result<Renew> to_command(const v1::RenewRequest&, const RequestContext&);
Result<Release> to_command(const v1::ReleaseRequest&, const RequestContext&);
Result<CloseSession> to_command(const v1::CloseSessionRequest&, const RequestContext&);
Result<FenceClient> to_command(const v1::FenceClientRequest&, const RequestContext&);
Result<ReleaseOrphans> to_command(const v1::ReleaseOrphansRequest&, const RequestContext&);

// Of a Reattach stream. The hello's caller needs no incarnation.
Result<BeginReattach> to_command(const v1::ReattachHello&, const RequestContext&);
Result<ReconcileChunk> to_command(const v1::LedgerChunk&, bool foreign_store,
                                  const RequestContext&);
Result<EndReattach> to_command(const v1::ReattachEnd&, const RequestContext&);

// ---- Queries: answered from the view at once
// -------------------------------------------------------

bool is_query(const v1::LinkRequest& request);
// `store_degraded`: probes answer a miss. Errors: unknown_session, permission_denied too.
Result<> answer(const v1::LinkRequest& request, bool store_degraded, const RequestContext& context,
                v1::LinkResponse* response);
Result<> answer(const v1::ProbeRequest&, bool store_degraded, const RequestContext&,
                v1::ProbeResponse*);
Result<> answer(const v1::ResolveRequest&, const RequestContext&, v1::ResolveResponse*);

// ---- Answers
// -----------------------------------------------------------------------------------------

// The answer to a request of that kind, without its correlation. Kinds that are answered with
// nothing (heartbeat, ACKs) leave the response empty.
void fill(v1::LinkResponse* response, v1::LinkRequest::BodyCase asked, const Outcome& outcome,
          const RequestContext& context);

void fill(v1::OpenNamespaceResponse*, const NamespaceOpened&, const RequestContext&);
void fill(v1::OpenSessionResponse*, const WorkerOpened&, const RequestContext&);
void fill(v1::OpenSessionResponse*, const ClientOpened&, const RequestContext&);
void fill(v1::RegisterPoolResponse*, const PoolRegistered&);
void fill(v1::ClosePoolResponse*, const PoolClosing&);
void fill(v1::ReserveResponse*, const Reserved&);
void fill(v1::CommitResponse*, const Committed&);
void fill(v1::AbortResponse*, const PerItem&);
void fill(v1::AcquireResponse*, const Acquired&);
void fill(v1::RenewResponse*, const PerItem&);
void fill(v1::ReleaseResponse*, const PerItem&);
void fill(v1::ReattachWelcome*, const ReattachBegun&, const RequestContext&);
void fill(v1::LedgerVerdicts*, const ChunkReconciled&);
void fill(v1::StoreIdentity*, const Directory&);

// What the server asks of a worker, as a message of its Link. Not for kWorkerFenced, which ends it.
v1::LinkResponse to_message(const Ask& ask);

// ---- Namespaces and pools, also for views
// ------------------------------------------------------------

v1::NamespaceSpec to_wire(const NamespaceSpec& spec);
v1::PoolSpec to_wire(const PoolSpec& spec);
// Checked, with defaults filled in.
Result<NamespaceSpec> namespace_spec_from_wire(const v1::NamespaceSpec& spec);
// xxh3-128 of the canonical spec: what ledgers know a namespace by, on any server. Never changes.
Fingerprint fingerprint_of(const NamespaceSpec& spec);

}  // namespace berth::rpc
