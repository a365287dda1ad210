// What every handler works with: the draft, the bounds, the present. And the checks and small steps
// that handlers of several nouns share. Handlers live in files by noun; each is a list of refusals,
// then the change.
#pragma once

#include <string>
#include <vector>

#include "common/error.h"
#include "server/directory/commands.h"
#include "server/directory/config.h"
#include "server/directory/draft.h"

namespace berth {

struct Context {
  Draft& draft;
  const DirectoryConfig& config;
  Time now;
};

// ---- Who is speaking
// ----------------------------------------------------------------------------------------- The
// worker session, alive and under its present incarnation. Errors: unknown_session,
// stale_incarnation.
Result<const Session*> require_worker(const Context& c, const Caller& caller);
// The same, with its Link up and its ledger reconciled. Errors: also reattaching.
Result<const Session*> require_present_worker(const Context& c, const Caller& caller);
// A client that joined through this worker. Errors: unknown_session, permission_denied,
// session_fenced.
Result<const Session*> require_client(const Context& c, const Caller& caller, SessionId client);

// ---- Bounds
// ---------------------------------------------------------------------------------------------------
// Errors: invalid_argument naming the field.
Result<> check_count(const Context& c, const char* field, size_t count);

// ---- Numbered operations
// ------------------------------------------------------------------------------------- The stored
// answer of this number, or nullptr when it is new and may be done now. Errors: operation_mismatch
// (other content), unknown_operation (below the low-water mark), operation_window_full.
Result<const Operation*> find_operation(const Context& c, const Numbered& id, OperationKind kind);
Operation new_operation(const Numbered& id, OperationKind kind);

// ---- Replicas
// -------------------------------------------------------------------------------------------------
// A replica in `state` leaves its reservation and goes on as a record of its own.
void move_to(const Context& c, const Replica& replica, ReplicaState state, Why why);
// Its record after that, for who writes several together. A pin that cannot stay is forgotten.
Replica moved(const Context& c, Replica replica, ReplicaState state, Why why);
// Whether it may be retired by choice: READY, or set aside because directory and ledger disagreed.
// The owner's ACK then proves that no span of what the ledger holds under this id is out.
// Reservations end by their writers instead.
bool can_retire(const Replica& replica);
// READY or quarantined or reserved -> RETIRING; asks the owner to reclaim it when no lease protects
// it.
void retire(const Context& c, const Replica& replica, Why why);
// The same for several, with one event and one ask an owner.
void retire_all(const Context& c, const std::vector<ReplicaId>& replicas, Why why);
// Why a replica that becomes READY now retires at once: it was granted before its pool was closed
// or drained, or its namespace evicted. kNone: it stays.
Why leaves_at_once(const Pool& pool, const Namespace& ns, const Replica& replica);
// Whether a pin keeps it from being evicted now.
bool is_pinned(const Context& c, ReplicaId replica);
// Asks owners to reclaim these replicas, which are RETIRING and unprotected. Grouped by owner.
void ask_reclaim(const Context& c, const std::vector<ReplicaId>& replicas);
// These replicas and their memory are gone. Where one was reserved, the stored answer of its
// Reserve says so from now on.
void drop(const Context& c, const std::vector<ReplicaId>& replicas);

// ---- Reservations
// ----------------------------------------------------------------------------------------------
// The open reservation that this replica is an item of, or nullptr.
const Reservation* reservation_of(const Context& c, ReplicaId replica);
// Takes these items out of the reservation; forgets it with its last one.
void close_items(const Context& c, const Reservation& reservation,
                 const std::vector<ReplicaId>& replicas);

// ---- Leases
// -----------------------------------------------------------------------------------------------------
// Ends a lease; replicas in RETIRING that it was the last to protect are asked for.
void end_lease(const Context& c, const Lease& lease, std::string reason);

// ---- Sessions and pools
// ------------------------------------------------------------------------------------------
JobId start_job(const Context& c, Job job);
// A job of this kind that is under way, or nullptr. No pool or namespace: of any.
const Job* find_job(const Context& c, JobKind kind, PoolId pool, NamespaceId ns);
// `reason`: why it ended before its work was done.
void finish_job(const Context& c, const Job& job, std::string reason = "");
// A client session gives back what it held, in slices; it may do nothing more from now on.
void end_client(const Context& c, const Session& client, EventKind why, std::string reason);
enum class Proof : uint8_t {
  kProcessDead,  // its memory may still be mapped by clients of the same boot
  kBootOver,     // nothing of that boot is left
};
// A worker is proven dead: its name is free, its pools are GONE, its clients wait for a successor.
void fence_worker(const Context& c, const Session& worker, Proof proof, std::string reason);
// Whether every lease on its replicas is known. After a power cut one may be missing until its
// worker stated what its clients hold: of the owner's clients the owner's own re-attach says it
// (and its ledger keeps their spans), of another worker's clients only that worker can.
bool knows_readers(const Context& c, const Pool& pool);
// Asks its importers to let go of it.
void ask_to_drop_imports(const Context& c, const Pool& pool);
// Its memory is proven gone: nobody maps it.
void forget_importers(Pool& pool);
// A worker is dead: what it imported is mapped by its engines alone.
void end_imports_of(const Context& c, SessionId worker);
// GONE, empty and unmapped pools are forgotten.
void forget_pool_if_over(const Context& c, PoolId pool);
// Above every epoch of this store that a worker has seen (a power cut may have taken our last
// start), so that ids from the lost future are not made again. The last step of a handler.
void rise_above(const Context& c, Epoch seen, const StoreId& store_id);
uint64_t backing_of_node(const Context& c, const std::string& node);

// ---- Handlers, by noun
// -------------------------------------------------------------------------------------------
Result<Outcome> handle(const Context& c, const Restart& command);            // sessions.cc
Result<Outcome> handle(const Context& c, const OpenNamespace& command);      // namespaces.cc
Result<Outcome> handle(const Context& c, const SetNamespaceQuota& command);  // namespaces.cc
Result<Outcome> handle(const Context& c, const OpenWorker& command);         // sessions.cc
Result<Outcome> handle(const Context& c, const OpenClient& command);         // sessions.cc
Result<Outcome> handle(const Context& c, const CloseSession& command);       // fencing.cc
Result<Outcome> handle(const Context& c, const FenceClient& command);        // fencing.cc
Result<Outcome> handle(const Context& c, const FenceByOperator& command);    // fencing.cc
Result<Outcome> handle(const Context& c, const ReleaseOrphans& command);     // fencing.cc
Result<Outcome> handle(const Context& c, const LinkUp& command);             // presence.cc
Result<Outcome> handle(const Context& c, const LinkDown& command);           // presence.cc
Result<Outcome> handle(const Context& c, const Heartbeat& command);          // presence.cc
Result<Outcome> handle(const Context& c, const BeginReattach& command);      // reattach.cc
Result<Outcome> handle(const Context& c, const ReconcileChunk& command);     // reattach.cc
Result<Outcome> handle(const Context& c, const EndReattach& command);        // reattach.cc
Result<Outcome> handle(const Context& c, const RegisterPool& command);       // pools.cc
Result<Outcome> handle(const Context& c, const ClosePool& command);          // pools.cc
Result<Outcome> handle(const Context& c, const ExportPool& command);         // sharing.cc
Result<Outcome> handle(const Context& c, const ImportPool& command);         // sharing.cc
Result<Outcome> handle(const Context& c, const EndExports& command);         // sharing.cc
Result<Outcome> handle(const Context& c, const Reserve& command);            // reserve.cc
Result<Outcome> handle(const Context& c, const Commit& command);             // objects.cc
Result<Outcome> handle(const Context& c, const Abort& command);              // objects.cc
Result<Outcome> handle(const Context& c, const Evict& command);              // evict.cc
Result<Outcome> handle(const Context& c, const EvictChunks& command);        // evict.cc
Result<Outcome> handle(const Context& c, const MakeRoom& command);           // evict.cc
Result<Outcome> handle(const Context& c, const EvictNamespace& command);     // evict.cc
Result<Outcome> handle(const Context& c, const TrimPool& command);           // evict.cc
Result<Outcome> handle(const Context& c, const SetEviction& command);        // evict.cc
Result<Outcome> handle(const Context& c, const Drain& command);              // draining.cc
Result<Outcome> handle(const Context& c, const Undrain& command);            // draining.cc
Result<Outcome> handle(const Context& c, const PinChunks& command);          // pins.cc
Result<Outcome> handle(const Context& c, const UnpinChunks& command);        // pins.cc
Result<Outcome> handle(const Context& c, const ReclaimAck& command);         // objects.cc
Result<Outcome> handle(const Context& c, const Acquire& command);            // leases.cc
Result<Outcome> handle(const Context& c, const Renew& command);              // leases.cc
Result<Outcome> handle(const Context& c, const Release& command);            // leases.cc
Result<Outcome> handle(const Context& c, const Tick& command);               // tick.cc
Result<Outcome> handle(const Context& c, const RunJob& command);             // jobs.cc

}  // namespace berth
