// Stores: Reserve, pages from the ledger, Commit, Abort; and the server's request to stop one.
#include "worker/session/agent_state.h"
#include "worker/session/columns.h"
#include "worker/session/wire.h"

namespace berth::worker {
namespace {

v1::StoreCode code_of(pool::AllocateCode code) {
  switch (code) {
    case pool::AllocateCode::kAllocated:
      return v1::STORE_CODE_GRANTED;
    case pool::AllocateCode::kUnknownPool:
      return v1::STORE_CODE_SKIPPED_NO_POOL;
    case pool::AllocateCode::kDuplicate:
      return v1::STORE_CODE_SKIPPED_UNAVAILABLE;
    default:
      return v1::STORE_CODE_SKIPPED_NO_HOLE;
  }
}

}  // namespace

void AgentState::begin_store(CallId call, Client& client, const v1::BeginStoreRequest& request) {
  const auto facts = namespaces.find(request.namespace_id());
  if (facts == namespaces.end()) {
    return answer(call, refuse(Reason::kUnknownNamespace,
                               "namespace_id = " + std::to_string(request.namespace_id()) +
                                   ": not opened through this worker"));
  }
  const auto items = count_store_items(request, facts->second.digest_bytes, limits);
  if (!items) return answer(call, tl::unexpected(items.error()));

  Request wanted;
  wanted.kind = RequestKind::kOperation;
  wanted.client = client.session;
  wanted.operation = request.operation();
  wanted.items = *items;
  v1::ReserveRequest& reserve = *wanted.message.mutable_reserve();
  reserve.set_client_session(client.session.value());
  reserve.set_operation(request.operation());
  reserve.set_namespace_id(request.namespace_id());
  reserve.set_digests(request.digests());
  *reserve.mutable_shards() = request.shards();
  *reserve.mutable_parts() = request.parts();
  *reserve.mutable_sizes() = request.sizes();
  reserve.set_write_deadline_ms(request.write_deadline_ms());

  const size_t hash = std::hash<std::string>{}(reserve.SerializeAsString());
  if (!begin_operation(call, client, request.operation(), OperationKind::kStore, hash, {})) return;
  if (!submit(std::move(wanted))) {
    skip_store(client, request.operation(), *items, v1::STORE_CODE_SKIPPED_UNAVAILABLE);
  }
}

void AgentState::skip_store(Client& client, OperationNumber number, size_t items,
                            v1::StoreCode code) {
  Operation* operation = find_unanswered(client, number);
  if (!operation) return;
  v1::BeginStoreResponse response;
  response.set_codes(std::string(items, static_cast<char>(code)));
  answer_operation(*operation, std::move(response));
}

void AgentState::reserved(Client& client, OperationNumber number, const v1::ReserveRequest& request,
                          const v1::ReserveResponse& response) {
  Operation* operation = find_unanswered(client, number);
  const auto facts = namespaces.find(request.namespace_id());
  if (!operation || facts == namespaces.end()) return;
  const StoreColumns columns(request, facts->second.digest_bytes);
  const pool::LedgerNamespace name_space{facts->second.fingerprint, facts->second.digest_bytes};
  // A client that is on its way out gets nothing new, and the server may have asked already.
  const bool is_wanted = !operation->poisoned && client.is_live();

  v1::BeginStoreResponse answer_out;
  std::string codes = response.codes();
  codes.resize(columns.size(), static_cast<char>(v1::STORE_CODE_SKIPPED_UNAVAILABLE));
  int position = 0;  // in the sequence of granted ids
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto code = static_cast<v1::StoreCode>(codes[i]);
    if (code == v1::STORE_CODE_SKIPPED_DROPPED) ++position;
    if (code != v1::STORE_CODE_GRANTED) continue;
    const ReplicaId replica(response.first_replica() + static_cast<uint64_t>(position));
    const PoolId pool(position < response.pools_size() ? response.pools(position) : 0);
    ++position;
    if (!is_wanted) {
      client.aborting.insert(replica);
      codes[i] = static_cast<char>(v1::STORE_CODE_SKIPPED_CANCELLED);
      continue;
    }
    pool::Allocation allocation{pool::AllocateCode::kUnknownPool, 0};
    if (may_map(client, pool)) {
      allocation =
          ledger.allocate({replica, pool, name_space, columns.digest(i), columns.shard(i),
                           columns.part(i), columns.size_bytes(i), client.session, number});
    }
    if (allocation.code == pool::AllocateCode::kAllocated) {
      answer_out.add_replicas(replica.value());
      answer_out.add_pools(pool.value());
      answer_out.add_offsets(allocation.offset);
      continue;
    }
    codes[i] = static_cast<char>(code_of(allocation.code));
    // A duplicate names something that is held: it must not be aborted under its owner's feet.
    if (allocation.code != pool::AllocateCode::kDuplicate) client.aborting.insert(replica);
    if (allocation.code != pool::AllocateCode::kNoHole) {
      note(Note::Level::kWarning, "grant_refused",
           {{"replica", to_text(replica)},
            {"pool", to_text(pool)},
            {"reason", std::string(name_of(allocation.code))}});
    }
  }
  answer_out.set_codes(std::move(codes));
  owing.insert(client.session);
  answer_operation(*operation, std::move(answer_out));
}

bool AgentState::may_map(const Client& client, PoolId pool) const {
  for (const size_t slot : client.pools) {
    if (pool.valid() && pools[slot].id == pool) return true;
  }
  return false;
}

void AgentState::finish_store(CallId call, Client& client, const v1::FinishStoreRequest& request,
                              Time answer_by) {
  const auto count = static_cast<size_t>(request.replicas_size());
  if (const auto bound = check_batch("replicas", count, limits); !bound) {
    return answer(call, tl::unexpected(bound.error()));
  }
  if (request.positions_size() > 0 && request.positions_size() != request.replicas_size()) {
    return answer(call, refuse(Reason::kInvalidArgument,
                               "positions has " + std::to_string(request.positions_size()) +
                                   " elements; accepted: none or " + std::to_string(count)));
  }
  Request wanted;
  wanted.kind = RequestKind::kOperation;
  wanted.client = client.session;
  wanted.operation = request.operation();
  v1::CommitRequest& commit = *wanted.message.mutable_commit();
  commit.set_client_session(client.session.value());
  commit.set_operation(request.operation());
  *commit.mutable_replicas() = request.replicas();
  const size_t hash = std::hash<std::string>{}(commit.SerializeAsString());
  commit.clear_replicas();

  Operation* operation =
      begin_operation(call, client, request.operation(), OperationKind::kFinish, hash, answer_by);
  if (!operation) return;
  operation->codes.assign(count, static_cast<char>(v1::COMMIT_CODE_UNAVAILABLE));
  for (size_t i = 0; i < count; ++i) {
    const ReplicaId replica(request.replicas(static_cast<int>(i)));
    const v1::CommitCode code = take_over(client, request.operation(), replica);
    operation->codes[i] = static_cast<char>(code);
    if (code != v1::COMMIT_CODE_UNSPECIFIED) continue;
    operation->codes[i] = static_cast<char>(v1::COMMIT_CODE_UNAVAILABLE);
    operation->sent.push_back({i, replica});
    commit.add_replicas(replica.value());
    commit.add_offsets(ledger.find(replica)->offset);
    if (request.positions_size() > 0) commit.add_positions(request.positions(static_cast<int>(i)));
  }
  commit.set_ends_chain(request.ends_chain());
  if (operation->sent.empty()) {
    v1::FinishStoreResponse response;
    response.set_codes(operation->codes);
    return answer_operation(*operation, std::move(response));
  }
  keep(std::move(wanted));
}

// What is known about one finished item without asking the server; UNSPECIFIED: commit it.
v1::CommitCode AgentState::take_over(Client& client, OperationNumber number, ReplicaId replica) {
  const pool::LedgerEntry* entry = ledger.find(replica);
  if (!entry) return v1::COMMIT_CODE_CLOSED;
  if (entry->client != client.session) return v1::COMMIT_CODE_UNKNOWN;
  if (entry->state == pool::LedgerState::kSealed) return v1::COMMIT_CODE_COMMITTED;
  if (client.aborting.count(replica)) return v1::COMMIT_CODE_CLOSED;
  if (client.committing.count(replica)) return v1::COMMIT_CODE_UNAVAILABLE;
  if (ledger.written(client.session, replica) != pool::WrittenCode::kWritten) {
    return v1::COMMIT_CODE_CLOSED;
  }
  client.committing[replica] = number;
  return v1::COMMIT_CODE_UNSPECIFIED;
}

void AgentState::committed(Client& client, OperationNumber number,
                           const v1::CommitResponse& response) {
  Operation* operation = find_unanswered(client, number);
  if (!operation) return;
  for (size_t i = 0; i < operation->sent.size(); ++i) {
    const auto code = i < response.codes().size() ? static_cast<v1::CommitCode>(response.codes()[i])
                                                  : v1::COMMIT_CODE_CLOSED;
    settle_commit(client, *operation, operation->sent[i], code);
  }
  finish_answered(client, *operation);
}

void AgentState::commit_refused(Client& client, OperationNumber number) {
  Operation* operation = find_unanswered(client, number);
  if (!operation) return;
  for (const Operation::Sent& item : operation->sent) {
    settle_commit(client, *operation, item, v1::COMMIT_CODE_CLOSED);
  }
  finish_answered(client, *operation);
}

void AgentState::settle_commit(Client& client, Operation& operation, const Operation::Sent& item,
                               v1::CommitCode code) {
  operation.codes[item.index] = static_cast<char>(code);
  client.committing.erase(item.replica);
  if (code == v1::COMMIT_CODE_COMMITTED) {
    ledger.sealed(item.replica);
  } else if (ledger.find(item.replica)) {
    client.aborting.insert(item.replica);  // nothing landed: its pages go once the server agrees
  }
}

void AgentState::finish_answered(Client& client, Operation& operation) {
  v1::FinishStoreResponse response;
  response.set_codes(operation.codes);
  operation.sent.clear();
  operation.in_doubt = false;
  answer_operation(operation, std::move(response));
  owing.insert(client.session);
}

// The server has forgotten the client, so a commit that was never answered may have landed or not.
// The verdict of a later re-attach knows: a session that is gone has no reservations left, so what
// is kept is READY.
void AgentState::settle_in_doubt(ReplicaId replica, SessionId session_id, pool::Verdict verdict) {
  Client* client = find_client(session_id);
  if (!client) return;
  const auto found = client->committing.find(replica);
  if (found == client->committing.end()) return;
  Operation* operation = find_unanswered(*client, found->second);
  if (!operation || !operation->in_doubt) return;
  const bool landed = verdict == pool::Verdict::kKeep || verdict == pool::Verdict::kAdopted;
  for (const Operation::Sent& item : operation->sent) {
    if (item.replica != replica) continue;
    operation->codes[item.index] =
        static_cast<char>(landed ? v1::COMMIT_CODE_COMMITTED : v1::COMMIT_CODE_CLOSED);
  }
  if (landed) ledger.sealed(replica);
  client->committing.erase(found);
}

// After the last verdict: whatever of a doubtful commit was not judged is not held any more.
void AgentState::finish_doubtful_commits() {
  for (auto& [id, client] : clients) {
    for (auto& [number, operation] : client.operations) {
      if (!operation.in_doubt) continue;
      for (const Operation::Sent& item : operation.sent) {
        if (client.committing.erase(item.replica) > 0) {
          operation.codes[item.index] = static_cast<char>(v1::COMMIT_CODE_CLOSED);
        }
      }
      finish_answered(client, operation);
    }
  }
}

void AgentState::abort_store(Client& client,
                             const google::protobuf::RepeatedField<uint64_t>& replicas) {
  for (const uint64_t id : replicas) give_up(client, ReplicaId(id));
  owing.insert(client.session);
}

// The writer touches it no more. A finished item is not given up: its commit decides.
void AgentState::give_up(Client& client, ReplicaId replica) {
  const pool::LedgerEntry* entry = ledger.find(replica);
  if (!entry || entry->client != client.session || client.committing.count(replica)) return;
  if (entry->state == pool::LedgerState::kWriting && !entry->reclaim_asked) {
    client.aborting.insert(replica);
  } else {
    // The server has said already that it goes; only this span kept the pages.
    ledger.abort(client.session, replica, pool::WriterSpan::kReturned);
  }
}

// A client says this of what it has handed out already, too, and there the engine may still be
// writing or reading: only AbortStore and Release give spans back.
void AgentState::poison(Client& client, OperationNumber number) {
  if (Operation* operation = find_unanswered(client, number)) operation->poisoned = true;
}

void AgentState::abort_answered(Client& client, const std::vector<uint64_t>& replicas) {
  for (const uint64_t id : replicas) {
    client.aborting.erase(ReplicaId(id));
    ledger.abort(client.session, ReplicaId(id), pool::WriterSpan::kReturned);
  }
  owing.insert(client.session);
}

// The write is overdue. It may overtake the answer of the operation that it names: then nobody has
// seen a span yet, and nobody will.
void AgentState::cancel(const v1::Cancel& cancel) {
  Client* client = find_client(SessionId(cancel.client_session()));
  if (!client) return;  // a client of the predecessor: its life lock decides
  Operation* operation = find_unanswered(*client, cancel.operation());
  if (operation && operation->kind == OperationKind::kStore) operation->poisoned = true;
  bool is_being_written = false;
  for (const uint64_t id : cancel.replicas()) {
    const ReplicaId replica(id);
    const pool::LedgerEntry* entry = ledger.find(replica);
    if (!entry) {
      client->aborting.insert(replica);
    } else if (entry->client == client->session && entry->writer_out &&
               !client->aborting.count(replica)) {
      is_being_written = true;
    }
  }
  if (is_being_written) cancel_write(*client, cancel.operation());
  owing.insert(client->session);
}

void AgentState::cancel_write(Client& client, OperationNumber number) {
  client.cancelled.insert(number);
  v1::JoinResponse message;
  message.mutable_cancel()->set_operation(number);
  push(client, std::move(message));
}

void AgentState::answer_overdue_finishes() {
  for (auto& [id, client] : clients) {
    if (client.committing.empty()) continue;
    for (auto& [number, operation] : client.operations) {
      if (operation.kind != OperationKind::kFinish || operation.reply) continue;
      v1::FinishStoreResponse response;
      response.set_codes(operation.codes);
      std::vector<Waiter> patient;
      for (const Waiter& waiter : operation.waiters) {
        if (waiter.answer_by <= now) {
          answer(waiter.call, Reply(response));
        } else {
          patient.push_back(waiter);
        }
      }
      operation.waiters = std::move(patient);
    }
  }
}

}  // namespace berth::worker
