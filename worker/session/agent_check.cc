// What must hold between any two inputs.
#include "common/text.h"
#include "worker/session/agent_state.h"

namespace berth::worker {
namespace {

std::string check_client(const Client& client, const pool::Ledger& ledger, size_t operations_max) {
  const std::string name = "client " + to_text(client.session);
  if (client.operations.size() > 2 * operations_max)  // stores and loads, and as many finishes
    return name + " has more operations than its window";
  for (const auto& [number, operation] : client.operations) {
    const bool is_answered = operation.reply.has_value();
    if (is_answered && !operation.waiters.empty()) {
      return name + " has callers waiting for an operation that was answered";
    }
    if (is_answered && number <= client.low_water) {
      return name + " keeps an answer at or below its low-water mark";
    }
  }
  for (const auto& [replica, number] : client.committing) {
    const pool::LedgerEntry* entry = ledger.find(replica);
    const auto found = client.operations.find(number);
    if (found == client.operations.end() || found->second.reply) {
      return name + " commits " + to_text(replica) + " without an open operation";
    }
    if (entry && entry->client != client.session) {
      return name + " commits " + to_text(replica) + ", which is another client's";
    }
    if (client.aborting.count(replica)) {
      return name + " commits and aborts " + to_text(replica);
    }
  }
  for (const LeaseId lease : client.releasing) {
    if (ledger.leases().count(lease)) return name + " releases a lease with spans out";
  }
  if (client.ending == Ending::kNo) return {};
  const pool::ClientSpans spans = ledger.spans_of(client.session);
  if (spans.writers + spans.readers > 0) return name + " has ended with spans out";
  return {};
}

}  // namespace

std::string AgentState::check_invariants() const {
  for (const auto& [id, client] : clients) {
    if (client.session != id) return "a client is filed under another session";
    std::string broken = check_client(client, ledger, limits.operations_max());
    if (!broken.empty()) return broken;
  }
  for (const auto& [join, id] : client_by_join) {
    const auto found = clients.find(id);
    if (found == clients.end() || found->second.join != join) {
      return "a Join stream belongs to no client";
    }
  }
  for (const SessionId id : ledger.clients()) {
    if (!clients.count(id)) return "client " + to_text(id) + " has spans out and is not known";
  }
  for (const auto& [lease, held] : ledger.leases()) {
    if (!clients.count(held.client)) return "lease " + to_text(lease) + " has no client";
  }
  for (const auto& [id, client] : clients) {
    for (const PoolId pool : client.imports)
      if (!imports.count(pool)) return "client " + to_text(id) + " reads a pool that was let go";
  }
  for (const auto& [life_name, one] : exports) {
    if (one.peer.valid() && !peers.count(one.peer)) return "an export belongs to no peer";
    if (one.end_sent && !one.is_free) return "an export was ended that somebody may map";
  }
  if (stage != Stage::kAttached) {
    for (const auto& [correlation, request] : requests) {
      const bool is_kept = request.kind == RequestKind::kOpenClient || request.message.has_commit();
      if (!is_kept) return "a request was kept that ends with the Link";
    }
  }
  if (requests.size() > options.requests_max + clients.size() * (2 * limits.operations_max() + 4) +
                            strangers.size() + orphans.size() + pools.size() +
                            pending_joins.size() + exports.size() + imports.size()) {
    return "more requests are on their way than the bounds allow";
  }
  return ledger.check_invariants();
}

}  // namespace berth::worker
