// HOST pools between the workers of this host. Ours are passed to a peer once the server has
// recorded the life lock that goes with them, and are over when that lock is free: whoever maps the
// pool through the peer holds it. Those of others are told to our engines once the server knows
// that we imported them.
#include "common/text.h"
#include "worker/session/agent_state.h"

namespace berth::worker {

// ---- Ours
// ------------------------------------------------------------------------------------------------------

void AgentState::peer_connected(PeerId peer, const v1::WorkerHello& hello) {
  sharing_changed = true;
  peers[peer].hello = hello;
}

void AgentState::peer_ended(PeerId peer) {
  if (peers.erase(peer) == 0) return;
  for (auto& [life_name, one] : exports) {
    if (one.peer != peer) continue;
    one.peer = {};
    actions.emplace_back(DiscardLock{life_name});
    watch(life_name);
  }
}

// Not at every input: most have nothing to do with it.
void AgentState::flush_sharing() {
  if (!std::exchange(sharing_changed, false)) return;
  offer_pools();
  send_exports();
  send_imports();
}

void AgentState::offer_pools() {
  if (stopping) return;
  for (auto& [id, peer] : peers) {
    if (peer.hello.store_id() != store_id || peer.hello.session() == session.value()) continue;
    for (size_t slot = 0; slot < pools.size(); ++slot) {
      if (!pools[slot].id.valid() || pools[slot].spec.scope() != v1::SCOPE_HOST) continue;
      const auto tried = peer.pools.find(slot);
      if (tried != peer.pools.end() && tried->second > now) continue;
      peer.pools[slot] = Time{INT64_MAX};  // until its export is refused or over
      actions.emplace_back(LockExport{id, slot});
    }
  }
}

void AgentState::export_locked(PeerId peer, size_t pool_slot, const std::string& life_name) {
  sharing_changed = true;
  const auto found = peers.find(peer);
  const PoolId pool = pools[pool_slot].id;
  if (life_name.empty()) {
    if (found != peers.end()) found->second.pools[pool_slot] = now + options.export_retry_every;
    return;
  }
  if (found == peers.end() || !pool.valid()) {
    actions.emplace_back(DiscardLock{life_name});
    return;
  }
  exports[life_name] = {.peer = peer,
                        .importer = SessionId(found->second.hello.session()),
                        .pool_slot = pool_slot,
                        .pool = pool};
}

// Unanswered ones are sent again over every new Link: which of them the server has is not known.
void AgentState::send_exports() {
  for (auto& [life_name, one] : exports) {
    const bool wants_end = one.is_free && one.is_recorded && !one.end_sent;
    if (!wants_end && (one.is_recorded || one.is_sent)) continue;
    Request wanted;
    wanted.kind = wants_end ? RequestKind::kEndExport : RequestKind::kExportPool;
    wanted.life_name = life_name;
    if (wants_end) {
      one.end_sent = true;
      v1::EndExportsRequest& end = *wanted.message.mutable_end_exports();
      end.set_pool(one.pool.value());
      end.add_life_names(life_name);
    } else {
      one.is_sent = true;
      v1::ExportPoolRequest& request = *wanted.message.mutable_export_pool();
      request.set_pool(one.pool.value());
      request.set_life_name(life_name);
      request.set_importer(one.importer.value());
    }
    keep(std::move(wanted));
  }
}

void AgentState::export_answered(const std::string& life_name, const Result<>& answer) {
  sharing_changed = true;
  const auto found = exports.find(life_name);
  if (found == exports.end()) return;
  Export& one = found->second;
  const auto peer = peers.find(one.peer);
  if (!answer) {
    if (peer != peers.end()) peer->second.pools[one.pool_slot] = now + options.export_retry_every;
    actions.emplace_back(DiscardLock{life_name});
    watched.erase(life_name);
    exports.erase(found);
    return;
  }
  one.is_recorded = true;
  watch(life_name);
  if (peer == peers.end()) return;  // it went meanwhile, and its lock with it
  const PoolSlot& slot = pools[one.pool_slot];
  PassExport pass{one.peer, one.pool_slot, {}};
  pass.message.set_life_name(life_name);
  pass.message.set_worker_name(options.worker_name);
  fill_pool(*pass.message.mutable_pool(), slot, Access::kRead);
  actions.emplace_back(std::move(pass));
  note(Note::Level::kInfo, "pool_exported",
       {{"pool", to_text(one.pool)}, {"importer", peer->second.hello.worker_name()}});
}

void AgentState::export_free(const std::string& life_name) {
  sharing_changed = true;
  const auto found = exports.find(life_name);
  if (found == exports.end()) return;
  Export& one = found->second;
  one.is_free = true;
  if (const auto peer = peers.find(one.peer); peer != peers.end())
    peer->second.pools[one.pool_slot] = now + options.export_retry_every;
  one.peer = {};
  note(Note::Level::kInfo, "export_ended", {{"pool", to_text(one.pool)}});
  if (stage == Stage::kDraining) exports.erase(found);  // there is no session to say it under
}

// This session is over, and with it the ids that others know our pools by.
void AgentState::end_sharing() {
  actions.emplace_back(Introduce{});
  std::vector<PeerId> gone;
  for (const auto& [id, peer] : peers) gone.push_back(id);
  for (const PeerId id : gone) peer_ended(id);
  std::erase_if(exports, [](const auto& entry) { return entry.second.is_free; });
  while (!imports.empty()) drop_import(imports.begin()->first);
}

// ---- Those of others
// -------------------------------------------------------------------------------------------

void AgentState::import_offered(ImportId id, const v1::SharedPool& shared) {
  sharing_changed = true;
  const PoolId pool(shared.pool().pool());
  const bool is_welcome = pool.valid() && session.valid() && !imports.count(pool);
  if (!is_welcome) {
    actions.emplace_back(DropImport{id});
    return;
  }
  imports[pool] = {.id = id, .shared = shared};
}

void AgentState::import_ended(ImportId id) {
  for (const auto& [pool, import] : imports) {
    if (import.id == id) return drop_import(pool);
  }
}

void AgentState::send_imports() {
  for (auto& [pool, import] : imports) {
    if (import.is_sent || import.is_stated) continue;
    import.is_sent = true;
    Request wanted;
    wanted.kind = RequestKind::kImportPool;
    wanted.import = pool;
    wanted.life_name = import.shared.life_name();
    v1::ImportPoolRequest& request = *wanted.message.mutable_import_pool();
    request.set_pool(pool.value());
    request.set_life_name(import.shared.life_name());
    keep(std::move(wanted));
  }
}

void AgentState::import_answered(PoolId pool, const std::string& life_name,
                                 const Result<>& answer) {
  const auto found = imports.find(pool);
  if (found == imports.end() || found->second.shared.life_name() != life_name) return;
  if (!answer) return drop_import(pool);
  Import& import = found->second;
  import.is_sent = false;
  import.is_stated = true;
  if (std::exchange(import.is_imported, true)) return;
  note(Note::Level::kInfo, "pool_imported",
       {{"pool", to_text(pool)}, {"owner", import.shared.worker_name()}});
  for (auto& [id, client] : clients) grant_imports(client);
}

void AgentState::grant_imports(Client& client) {
  if (!client.join.valid() || !client.is_live()) return;
  for (const auto& [pool, import] : imports) {
    if (!import.is_imported || !client.imports.insert(pool).second) continue;
    actions.emplace_back(GrantImport{client.join, client.session, import.id, import.shared.pool()});
  }
}

// What the engines read of it stays mapped under their own copies of the life lock.
void AgentState::drop_import(PoolId pool) {
  auto found = imports.extract(pool);
  if (found.empty()) return;
  for (auto& [id, client] : clients) {
    if (client.imports.erase(pool) == 0) continue;
    v1::JoinResponse message;
    message.mutable_pool_gone()->set_pool(pool.value());
    push(client, std::move(message));
  }
  actions.emplace_back(DropImport{found.mapped().id});
  note(Note::Level::kInfo, "import_dropped",
       {{"pool", to_text(pool)}, {"owner", found.mapped().shared.worker_name()}});
}

void AgentState::restate_imports() {
  sharing_changed = true;
  for (auto& [pool, import] : imports) import.is_stated = false;
}

}  // namespace berth::worker
