#include "tests/unit/directory/world.h"

namespace berth {

World::World() { must<Restarted>(Restart{StoreId{1, 2}}); }

Result<Outcome> World::run(const Command& command) {
  Draft draft(directory);
  Result<Outcome> outcome = apply(draft, config, command, now);
  if (!outcome) CHECK(draft.staged_count() == 0);
  asks = draft.take_asks();
  events = draft.take_events();
  needs_sync = draft.needs_sync();
  const IdCounters counters = draft.counters();
  const std::vector<Mutation> mutations = draft.take_mutations();
  if (evictor) evictor->before_install(directory, mutations);
  directory.install(mutations);
  directory.set_counters(counters);
  if (evictor) evictor->after_install(directory, {&command, 1}, {&outcome, 1}, mutations);
  REQUIRE(check_invariants(directory) == "");
  return outcome;
}

NamespaceId World::open_namespace(const std::string& name, uint32_t shards, uint32_t parts) {
  OpenNamespace open;
  open.spec.name = name;
  open.spec.model = "m";
  open.spec.dtype = "bf16";
  open.spec.chunk_tokens = 512;
  open.spec.digest_bytes = 16;
  open.spec.shards = shards;
  open.spec.parts = parts;
  open.fingerprint = {std::hash<std::string>{}(name), 1};
  return must<NamespaceOpened>(open).id;
}

OpenWorker World::worker_command(const std::string& name, const std::string& node) const {
  OpenWorker open;
  open.request_token = {1, std::hash<std::string>{}(name + node) + next_token};
  open.token = {2, next_token};
  open.name = name;
  open.node = node;
  open.boot_id = {3, 3};
  if (!directory.sessions().empty()) open.proven_at = directory.sessions().rbegin()->first;
  return open;
}

OpenWorker World::successor_command(const std::string& name) const {
  OpenWorker open = worker_command(name);
  open.life_lock_held = true;
  return open;
}

World::Worker World::open_worker(const std::string& name, const std::string& node) {
  ++next_token;
  const WorkerOpened opened = must<WorkerOpened>(worker_command(name, node));
  Worker worker{opened.session, opened.incarnation};
  reattach(worker);
  return worker;
}

std::vector<LedgerVerdict> World::reattach(Worker& worker, PoolId pool, std::vector<LedgerRow> rows,
                                           std::vector<HeldLease> leases,
                                           std::vector<SessionId> clients) {
  BeginReattach begin;
  begin.session = worker.session;
  begin.boot_id = directory.find<Session>(worker.session)->boot_id;
  worker.incarnation = must<ReattachBegun>(begin).incarnation;
  std::vector<LedgerVerdict> verdicts;
  if (pool.valid() || !leases.empty()) {
    ReconcileChunk chunk;
    chunk.caller = worker.caller();
    chunk.pool = pool;
    if (!directory.namespaces().empty())
      chunk.namespace_fingerprint = directory.namespaces().begin()->second.fingerprint;
    chunk.rows = std::move(rows);
    chunk.leases = std::move(leases);
    verdicts = must<ChunkReconciled>(chunk).verdicts;
  }
  while (must<ReattachEnded>(EndReattach{worker.caller(), clients}).more) {
  }
  must<Done>(LinkUp{worker.caller()});
  return verdicts;
}

PoolId World::open_pool(const Worker& worker, uint64_t capacity, Scope scope,
                        const std::string& name) {
  RegisterPool command;
  command.caller = worker.caller();
  command.spec.name = name;
  command.spec.scope = scope;
  command.spec.capacity_bytes = command.spec.backing_bytes = capacity;
  command.spec.page_bytes = kPage;
  return must<PoolRegistered>(command).pool;
}

SessionId World::join(const Worker& worker, const std::string& engine) {
  OpenClient open;
  open.caller = worker.caller();
  open.request_token = fresh_token();
  open.token = fresh_token();
  open.engine_id = engine;
  open.life_name = engine + ".life";
  return must<ClientOpened>(open).session;
}

OpenClient World::resume_command(const Worker& through, SessionId client,
                                 const std::string& life_name) {
  const Session& session = *directory.find<Session>(client);
  OpenClient open;
  open.caller = through.caller();
  open.request_token = fresh_token();
  open.engine_id = session.name;
  open.life_name = life_name;
  open.resume_session = client;
  open.resume_token = session.token;
  return open;
}

Digest World::digest(int chunk) {
  Digest digest;
  digest.bytes[0] = static_cast<uint8_t>(chunk);
  digest.bytes[1] = static_cast<uint8_t>(chunk >> 8);
  digest.bytes[15] = 0xAB;
  return digest;
}

LedgerRow World::row(ReplicaId id, int chunk, uint64_t offset, LedgerState state) {
  return {id, digest(chunk), 0, 0, offset, kPage, state};
}

Reserve World::reserve_command(const Worker& worker, SessionId client, NamespaceId ns,
                               const std::vector<int>& chunks) {
  Reserve command;
  command.id = {worker.caller(), client, next_operation++, 77};
  command.namespace_id = ns;
  for (const int chunk : chunks)
    command.keys.push_back({digest(chunk), static_cast<uint32_t>(ns.value()), 0, 0});
  command.sizes = {kPage};
  return command;
}

Reserved World::reserve(const Worker& worker, SessionId client, NamespaceId ns,
                        const std::vector<int>& chunks) {
  return must<Reserved>(reserve_command(worker, client, ns, chunks));
}

Commit World::commit_command(const Worker& worker, SessionId client,
                             const std::vector<ReplicaId>& replicas) {
  Commit command;
  command.id = {worker.caller(), client, next_operation++, 78};
  command.replicas = replicas;
  for (size_t i = 0; i < replicas.size(); ++i, next_offset += kPage)
    command.offsets.push_back(next_offset);
  return command;
}

std::vector<ReplicaId> World::store(const Worker& worker, SessionId client, NamespaceId ns,
                                    const std::vector<int>& chunks) {
  const Reserved reserved = reserve(worker, client, ns, chunks);
  std::vector<ReplicaId> replicas;
  for (size_t i = 0; i < reserved.pools.size(); ++i)
    replicas.push_back(ReplicaId(reserved.first.value() + i));
  REQUIRE(replicas.size() == chunks.size());
  const Committed committed = must<Committed>(commit_command(worker, client, replicas));
  for (const uint8_t code : committed.codes)
    REQUIRE(code == static_cast<uint8_t>(CommitCode::kCommitted));
  return replicas;
}

Acquire World::acquire_command(const Worker& worker, SessionId client, NamespaceId ns,
                               const std::vector<int>& chunks) {
  Acquire command;
  command.id = {worker.caller(), client, next_operation++, 79};
  command.namespace_id = ns;
  for (const int chunk : chunks) command.digests.push_back(digest(chunk));
  return command;
}

Acquired World::acquire(const Worker& worker, SessionId client, NamespaceId ns,
                        const std::vector<int>& chunks) {
  return must<Acquired>(acquire_command(worker, client, ns, chunks));
}

ProbeAnswer World::probe_chunks(SessionId client, NamespaceId ns,
                                const std::vector<int>& chunks) const {
  std::vector<Digest> digests;
  for (const int chunk : chunks) digests.push_back(digest(chunk));
  const Namespace& space = *directory.find<Namespace>(ns);
  const Result<std::vector<Reader>> readers = readers_for(directory, space, client, {});
  REQUIRE(readers.has_value());
  return probe(directory, space, digests, *readers);
}

void World::drain_jobs() {
  for (int slices = 0; !directory.jobs().empty(); ++slices) {
    REQUIRE(slices < 10'000);
    must<JobRan>(RunJob{directory.jobs().begin()->first});
  }
}

std::vector<Mutation> World::durable_records() const {
  std::vector<Mutation> out{put_of(directory.meta())};
  for (const auto& [id, n] : directory.namespaces()) out.push_back(put_of(n));
  for (const auto& [id, s] : directory.sessions()) out.push_back(put_of(s));
  for (const auto& [id, p] : directory.pools()) out.push_back(put_of(p.pool));
  for (const auto& [id, r] : directory.reservations())
    for (Mutation& mutation : expand(r)) out.push_back(std::move(mutation));
  for (uint32_t s = 0; s < directory.replicas().slot_limit(); ++s)
    if (const Replica& r = directory.replicas().at(s).replica; r.id.valid() && !r.in_reservation)
      out.push_back(put_of(r));
  for (const auto& [id, l] : directory.leases()) out.push_back(put_of(l));
  for (const auto& [key, o] : directory.operations()) out.push_back(put_of(o));
  for (const auto& [id, j] : directory.jobs()) out.push_back(put_of(j));
  for (const auto& [id, p] : directory.pins()) out.push_back(put_of(p));
  if (const auto* setting = directory.find<EvictionSetting>({})) out.push_back(put_of(*setting));
  return out;
}

void World::restart() { restart_from(durable_records()); }

void World::restart_from(const std::vector<Mutation>& records) {
  Directory rebuilt;
  rebuilt.install(records);
  directory = std::move(rebuilt);
  REQUIRE(check_invariants(directory) == "");
  must<Restarted>(Restart{StoreId{9, 9}});
}

const Replica& World::replica(ReplicaId id) const {
  const Replica* found = directory.find<Replica>(id);
  REQUIRE(found != nullptr);
  return *found;
}

bool World::asked(Ask::Kind kind) const {
  for (const Ask& ask : asks)
    if (ask.kind == kind) return true;
  return false;
}

std::string codes_text(const std::vector<uint8_t>& codes) {
  std::string out;
  for (const uint8_t code : codes)
    out += (out.empty() ? "" : " ") + std::string(name_of(static_cast<StoreCode>(code)));
  return out;
}

}  // namespace berth
