// Life locks: whom to test, and what a free lock proves. A time-out only makes us look.
#include "worker/session/agent_state.h"

namespace berth::worker {

void AgentState::watch(const std::string& life_name) { watched.emplace(life_name, now); }

void AgentState::test_due_locks() {
  for (auto& [name, test_at] : watched) {
    if (test_at > now) continue;
    test_at = now + (exports.count(name) ? options.export_test_every : options.life_test_every);
    actions.emplace_back(TestLife{name});
  }
}

bool AgentState::is_wanted(const std::string& life_name) const {
  for (const auto& [id, client] : clients) {
    const bool has_it = std::count(client.life_names.begin(), client.life_names.end(), life_name);
    if (has_it && client.ending == Ending::kNo && (!client.join.valid() || client.rejoining)) {
      return true;
    }
  }
  for (const auto& [id, stranger] : strangers) {
    if (stranger.life_names.count(life_name)) return true;
  }
  for (const auto& [pool, importers] : orphans) {
    if (importers.count(life_name)) return true;
  }
  return exports.count(life_name) > 0;
}

void AgentState::life_tested(const std::string& life_name, Agent::Life life) {
  if (life == Agent::Life::kHeld) {
    if (!is_wanted(life_name)) watched.erase(life_name);
    return;
  }
  watched.erase(life_name);
  std::vector<SessionId> dead;
  for (auto& [id, client] : clients) {
    if (std::erase(client.life_names, life_name) > 0 && client.life_names.empty()) {
      dead.push_back(id);
    }
  }
  for (const SessionId id : dead) {
    Client& client = clients.at(id);
    if (client.ending != Ending::kNo) continue;
    note(Note::Level::kWarning, "client_dead",
         {{"session", to_text(id)},
          {"engine", client.engine_id},
          {"spans", std::to_string(ledger.spans_of(id).writers + ledger.spans_of(id).readers)}});
    end_client(client, Ending::kDead);
  }
  for (auto& [id, stranger] : strangers) {
    if (stranger.life_names.erase(life_name) > 0 && stranger.life_names.empty())
      stranger.is_dead = true;
  }
  for (auto& [pool, importers] : orphans) importers.erase(life_name);
  export_free(life_name);
}

void AgentState::expect_strangers(const google::protobuf::RepeatedPtrField<v1::ClientInfo>& known) {
  for (const v1::ClientInfo& info : known) {
    const SessionId id(info.session());
    if (find_client(id) || strangers[id].is_dead) continue;
    strangers[id].engine_id = info.engine_id();
    strangers[id].life_names.insert(info.life_name());
    watch(info.life_name());
  }
}

void AgentState::say_strangers_dead() {
  for (auto& [id, stranger] : strangers) {
    if (!stranger.is_dead || stranger.end_sent) continue;
    stranger.end_sent = true;
    note(Note::Level::kWarning, "client_dead",
         {{"session", to_text(id)}, {"engine", stranger.engine_id}});
    Request wanted;
    wanted.kind = RequestKind::kEndClient;
    wanted.client = id;
    wanted.message.mutable_fence_client()->set_client_session(id.value());
    wanted.message.mutable_fence_client()->set_proof(v1::FenceClientRequest::PROOF_LIFE_LOCK);
    keep(std::move(wanted));
  }
}

void AgentState::release_orphans() {
  for (const auto& [pool, importers] : orphans) {
    if (!importers.empty() || !orphans_sent.insert(pool).second) continue;
    Request wanted;
    wanted.kind = RequestKind::kReleaseOrphan;
    wanted.orphan = pool;
    wanted.message.mutable_release_orphans()->add_pools(pool.value());
    keep(std::move(wanted));
  }
}

}  // namespace berth::worker
