// What goes: reclaims, their acknowledgements, and when an acknowledgement need not be kept.
#include "worker/session/agent_state.h"

namespace berth::worker {
namespace {
// Fewer where the server takes fewer. Each message is one command there, and nobody else is
// answered while it is carried out.
constexpr size_t kAcknowledgementsPerMessageMax = 512;
}  // namespace

void AgentState::reclaim(const v1::Reclaim& reclaim) {
  std::vector<ReplicaId> replicas;
  replicas.reserve(static_cast<size_t>(reclaim.replicas_size()));
  for (const uint64_t id : reclaim.replicas()) replicas.push_back(ReplicaId(id));
  ledger.reclaim(replicas);
  stop_writers(replicas);
}

// The server ended a reservation whose writer may still be at work: ask it to stop. Its pages go
// when it says so, or is proven dead.
void AgentState::stop_writers(std::span<const ReplicaId> replicas) {
  std::set<std::pair<SessionId, OperationNumber>> writers;
  for (const ReplicaId replica : replicas) {
    const pool::LedgerEntry* entry = ledger.find(replica);
    if (entry && entry->writer_out) writers.emplace(entry->client, entry->operation);
  }
  for (const auto& [session_id, operation] : writers) {
    if (Client* client = find_client(session_id)) cancel_write(*client, operation);
  }
}

// What comes free while detached waits; the next re-attach begins by reporting it instead.
void AgentState::send_acknowledgements() {
  if (stage != Stage::kAttached) return;
  std::vector<ReplicaId> replicas = ledger.take_acknowledgements();
  if (replicas.empty()) return;
  const size_t message_max =
      std::min<size_t>(kAcknowledgementsPerMessageMax, limits.batch_items_max());
  for (size_t first = 0; first < replicas.size(); first += message_max) {
    const size_t last = std::min(replicas.size(), first + message_max);
    v1::LinkRequest message;
    for (size_t i = first; i < last; ++i) {
      message.mutable_reclaim_ack()->add_replicas(replicas[i].value());
    }
    send(std::move(message));
  }
  acknowledged.emplace_back(heartbeat_sequence + 1, std::move(replicas));
}

// The server has seen a heartbeat that was sent after these acknowledgements, so it has most
// probably seen them too. If one was lost it asks again, and an id that is not held is acknowledged
// at once.
void AgentState::heartbeat_seen(uint64_t sequence) {
  while (!acknowledged.empty() && acknowledged.front().first <= sequence) {
    ledger.acked(acknowledged.front().second);
    acknowledged.pop_front();
  }
}

void AgentState::send_heartbeat() {
  heartbeat_at = now + heartbeat_every;
  v1::LinkRequest message;
  v1::Heartbeat& heartbeat = *message.mutable_heartbeat();
  heartbeat.set_sequence(++heartbeat_sequence);
  for (const PoolSlot& slot : pools) {
    const auto usage = ledger.usage(slot.id);
    if (!slot.id.valid() || !usage) continue;
    v1::PoolReport& report = *heartbeat.add_pools();
    report.set_pool(slot.id.value());
    report.set_writing_bytes(usage->writing_bytes);
    report.set_free_bytes(usage->free_bytes);
    report.set_largest_hole_bytes(usage->largest_hole_bytes);
    report.set_pinned_bytes(slot.spec.pinned_bytes());
    report.set_spans_out(usage->spans_out);
  }
  for (auto& [id, client] : clients) {
    client.low_water_told = low_water_to_tell(client);
    if (client.low_water_told == 0) continue;
    v1::LowWater& mark = *heartbeat.add_low_water();
    mark.set_session(id.value());
    mark.set_operation(client.low_water_told);
  }
  send(std::move(message), Urgency::kSoon);
}

}  // namespace berth::worker
