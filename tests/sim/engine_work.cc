// What the engine stores and loads, and how it treats its spans.
#include <algorithm>

#include "tests/sim/engine.h"

namespace berth::sim {
namespace {

constexpr size_t kStoresMax = 6;
constexpr size_t kHandlesMax = 6;
constexpr size_t kItemsMax = 4;

}  // namespace

// ---- Operations and their answers
// ----------------------------------------------------------------------------------

OperationNumber Engine::next_operation(Operation operation) {
  operations_[++last_operation_] = std::move(operation);
  return last_operation_;
}

void Engine::send(OperationNumber number) {
  Operation& operation = operations_.at(number);
  const v1::ClientCaller me = caller();
  if (number <= low_water_) return;  // just declared done
  const auto answered = [this, number, here = still_here()](const Result<worker::Reply>& reply) {
    if (!here()) return;
    scheduling_.run([this, number, here, reply] {
      if (!here()) return;
      if (!reply) return operation_failed(number, reply.error());
      if (const auto* begun = std::get_if<v1::BeginStoreResponse>(&*reply))
        begin_answered(number, *begun);
      if (const auto* finished = std::get_if<v1::FinishStoreResponse>(&*reply))
        finish_answered(number, *finished);
      if (const auto* loaded = std::get_if<v1::LoadResponse>(&*reply))
        load_answered(number, *loaded);
    });
  };
  switch (operation.kind) {
    case Operation::Kind::kStore: {
      v1::BeginStoreRequest request = operation.begin;
      *request.mutable_caller() = me;
      worker_.call([request](worker::Agent& agent, worker::CallId call,
                             Time now) { agent.begin_store(call, request, now); },
                   answered);
      return;
    }
    case Operation::Kind::kFinish: {
      v1::FinishStoreRequest request = operation.finish;
      *request.mutable_caller() = me;
      const Duration patience = milliseconds(hub_.random.between(50, 2000));
      worker_.call(
          [request, patience](worker::Agent& agent, worker::CallId call, Time now) {
            agent.finish_store(call, request, now + patience, now);
          },
          answered);
      return;
    }
    case Operation::Kind::kLoad: {
      v1::LoadRequest request = operation.load;
      *request.mutable_caller() = me;
      worker_.call([request](worker::Agent& agent, worker::CallId call,
                             Time now) { agent.load(call, request, now); },
                   answered);
      return;
    }
  }
}

void Engine::operation_failed(OperationNumber number, const Error& error) {
  const auto it = operations_.find(number);
  if (it != operations_.end() && it->second.kind == Operation::Kind::kFinish &&
      error.reason != Reason::kRejoin) {
    it->second.is_pending =
        error.reason == Reason::kOperationInFlight || error.reason == Reason::kOperationWindowFull;
  } else if (it != operations_.end() && error.reason != Reason::kOperationInFlight) {
    it->second.is_pending = false;
  }
  call_failed(error);
}

// True when it is to be acted upon. A repeated answer must be the first one again.
bool Engine::is_first_answer(Operation& operation, const std::string& answer) {
  if (operation.answer.empty()) {
    const bool acts = operation.is_pending;
    operation.answer = answer + "!";
    operation.is_pending = false;
    return acts && !operation.is_poisoned;
  }
  hub_.judge.expect(operation.answer == answer + "!",
                    [&] { return engine_id_ + ": a repeated call was answered differently"; });
  return false;
}

void Engine::repeat() {
  if (!is_joined() || is_standing_still() || operations_.empty()) return;
  auto it = operations_.begin();
  std::advance(it, static_cast<int64_t>(hub_.random.below(operations_.size())));
  send(it->first);
}

void Engine::reuse_number() {
  if (!is_joined() || is_standing_still() || operations_.empty()) return;
  const OperationNumber number = operations_.rbegin()->first;
  const Operation& operation = operations_.rbegin()->second;
  if (operation.kind != Operation::Kind::kLoad || operation.answer.empty()) return;
  v1::LoadRequest request = operation.load;
  request.mutable_digests()->append(random_chunk(operation.expected.front().name_space).digest());
  *request.mutable_caller() = caller();  // may forget the operation
  if (number <= low_water_) return;
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.load(call, request, now); },
               [this](const Result<worker::Reply>& reply) {
                 hub_.judge.expect(!reply, [&] {
                   return engine_id_ + ": a number was used again with other content, and answered";
                 });
               });
}

// ---- Storing
// ----------------------------------------------------------------------------------------------------------

void Engine::store() {
  if (!is_joined() || is_fenced_ || is_standing_still() || stores_.size() >= kStoresMax) return;
  const size_t name_space = hub_.random.below(kNamespaceCount);
  if (!has_namespace(name_space)) return;
  Operation operation;
  v1::BeginStoreRequest& request = operation.begin;
  request.set_namespace_id(namespace_ids_[name_space]);
  const uint64_t chunks = 1 + hub_.random.below(kItemsMax / kShards[name_space]);
  for (uint64_t i = 0; i < chunks; ++i) {
    const Chunk chunk = random_chunk(name_space);
    for (uint32_t shard = 0; shard < kShards[name_space]; ++shard) {
      request.mutable_digests()->append(chunk.digest());
      request.add_shards(shard);
      request.add_sizes(chunk.size_bytes(shard));
      operation.expected.push_back({name_space, chunk.object_hash(shard), chunk.page_count(shard),
                                    static_cast<uint32_t>(i)});
    }
  }
  if (hub_.random.chance(300))
    request.set_write_deadline_ms(static_cast<uint32_t>(hub_.random.between(50, 800)));
  const OperationNumber number = next_operation(std::move(operation));
  operations_[number].begin.set_operation(number);
  stores_.push_back({number, {}, false});
  if (!hub_.random.chance(20)) send(number);  // else the call is lost: it is repeated later
}

void Engine::begin_answered(OperationNumber number, const v1::BeginStoreResponse& response) {
  const auto it = operations_.find(number);
  if (it == operations_.end()) return;
  Operation& operation = it->second;
  if (!is_first_answer(operation, response.SerializeAsString())) return;
  const auto store = std::find_if(stores_.begin(), stores_.end(),
                                  [&](const Store& s) { return s.operation == number; });
  if (store == stores_.end()) return;
  int granted = 0;
  for (size_t i = 0; i < response.codes().size() && i < operation.expected.size(); ++i) {
    if (response.codes()[i] != static_cast<char>(v1::STORE_CODE_GRANTED)) continue;
    const auto mapping = mappings_.find(PoolId(response.pools(granted)));
    hub_.judge.expect(mapping != mappings_.end(), [&] {
      return engine_id_ + " was granted room in a pool that it does not map";
    });
    if (mapping == mappings_.end()) return;
    const Expected& expected = operation.expected[i];
    Item item{ReplicaId(response.replicas(granted)),
              mapping->second,
              response.offsets(granted) / kPageBytes,
              expected.count,
              0,
              expected.hash,
              expected.position,
              true};
    ++granted;
    item.pages->take_for_writing(item.first, item.count, item.replica);
    hub_.witness.writer_began(item.replica, session_);
    store->items.push_back(std::move(item));
  }
  if (store->items.empty())
    stores_.erase(store);
  else if (hub_.random.chance(hub_.weather.diligence))
    go_on_with(number);
}

// Most engines write and finish what they began without being told to.
void Engine::go_on_with(OperationNumber number) {
  hub_.schedule.after(hub_.random.between(1, 60), [this, number, here = still_here()] {
    if (!here()) return;
    scheduling_.run([this, number, here] {
      if (!here()) return;
      const auto store = std::find_if(stores_.begin(), stores_.end(),
                                      [&](const Store& s) { return s.operation == number; });
      if (store == stores_.end()) return;
      bool is_written = true;
      for (Item& item : store->items) {
        if (item.open) write_some(item);
        is_written &= item.written == item.count;
      }
      if (!is_written || !joined_) return go_on_with(number);
      finish_store(static_cast<size_t>(store - stores_.begin()));
    });
  });
}

void Engine::write() {
  if (!running_ || is_standing_still() || stores_.empty()) return;
  Store& store = hub_.random.pick(stores_);
  if (store.items.empty()) return;
  Item& item = hub_.random.pick(store.items);
  if (item.open) write_some(item);
}

void Engine::write_some(Item& item) {
  for (uint64_t pages = 1 + hub_.random.below(3); pages > 0 && item.written < item.count; --pages) {
    item.pages->write(item.first + item.written, content_of(item.hash, item.written));
    ++item.written;
  }
}

void Engine::end_item(Item& item) {
  if (!std::exchange(item.open, false)) return;
  item.pages->end_writing(item.first, item.count);
  hub_.witness.writer_ended(item.replica);
}

void Engine::finish() {
  if (!is_joined() || is_standing_still() || stores_.empty()) return;
  finish_store(hub_.random.below(stores_.size()));
}

void Engine::finish_store(size_t at) {
  Store& store = stores_[at];
  Operation operation;
  operation.kind = Operation::Kind::kFinish;
  for (Item& item : store.items) {
    if (!item.open || item.written < item.count) continue;
    end_item(item);
    operation.finish.add_replicas(item.replica.value());
    if (hub_.weather.hints == Hints::kTrue) operation.finish.add_positions(item.position);
    if (hub_.weather.hints == Hints::kGarbage)
      operation.finish.add_positions(static_cast<uint32_t>(hub_.random.next()));
  }
  if (operation.finish.replicas_size() == 0) return;
  if (hub_.weather.hints != Hints::kNone) operation.finish.set_ends_chain(hub_.random.chance(500));
  const OperationNumber number = next_operation(std::move(operation));
  operations_[number].finish.set_operation(number);
  std::erase_if(store.items, [](const Item& item) { return !item.open; });
  if (store.items.empty()) stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(at));
  if (!hub_.random.chance(20)) send(number);
}

void Engine::finish_answered(OperationNumber number, const v1::FinishStoreResponse& response) {
  const auto it = operations_.find(number);
  if (it == operations_.end()) return;
  const std::string& codes = response.codes();
  // Not final: the commit goes on, and the same call asks for it again.
  if (codes.find(static_cast<char>(v1::COMMIT_CODE_UNAVAILABLE)) != std::string::npos) {
    const OperationNumber again = number;
    hub_.schedule.after(hub_.random.between(100, 1000), [this, again, here = still_here()] {
      const auto found = here() && joined_ ? operations_.find(again) : operations_.end();
      if (found != operations_.end() && found->second.is_pending) send(again);
    });
    return;
  }
  if (!is_first_answer(it->second, codes)) return;
  for (int i = 0; i < it->second.finish.replicas_size(); ++i)
    if (codes[static_cast<size_t>(i)] == static_cast<char>(v1::COMMIT_CODE_COMMITTED))
      hub_.witness.commit_told(ReplicaId(it->second.finish.replicas(i)), through_);
}

void Engine::abort_items(Store& store) {
  v1::AbortStoreRequest request;
  *request.mutable_caller() = caller();
  for (Item& item : store.items) {
    if (!item.open) continue;
    end_item(item);
    request.add_replicas(item.replica.value());
  }
  if (request.replicas_size() == 0 || !joined_) return;
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.abort_store(call, request, now); },
               [](const Result<worker::Reply>&) {});
}

void Engine::give_up() {
  if (!is_joined() || is_standing_still() || stores_.empty()) return;
  const size_t at = hub_.random.below(stores_.size());
  const OperationNumber number = stores_[at].operation;
  const auto it = operations_.find(number);
  if (stores_[at].items.empty() && it != operations_.end() && it->second.is_pending) {
    it->second.is_poisoned = true;
    worker_.poison(join_, number);
  } else {
    abort_items(stores_[at]);
  }
  stores_.erase(stores_.begin() + static_cast<std::ptrdiff_t>(at));
}

void Engine::stop_writing(OperationNumber number) {
  const auto store = std::find_if(stores_.begin(), stores_.end(),
                                  [&](const Store& s) { return s.operation == number; });
  const auto it = operations_.find(number);
  if (it != operations_.end() && it->second.is_pending) {
    it->second.is_poisoned = true;
    worker_.poison(join_, number);
  }
  if (store == stores_.end()) return;
  abort_items(*store);
  stores_.erase(store);
}

// ---- Loading
// --------------------------------------------------------------------------------------------------------

void Engine::load() {
  if (!is_joined() || is_fenced_ || is_standing_still() || handles_.size() >= kHandlesMax) return;
  const size_t name_space = hub_.random.below(kNamespaceCount);
  if (!has_namespace(name_space)) return;
  Operation operation;
  operation.kind = Operation::Kind::kLoad;
  operation.load.set_namespace_id(namespace_ids_[name_space]);
  const uint64_t chunks = 1 + hub_.random.below(kItemsMax);
  for (uint64_t i = 0; i < chunks; ++i) {
    const Chunk chunk = random_chunk(name_space);
    operation.load.mutable_digests()->append(chunk.digest());
    for (uint32_t shard = 0; shard < kShards[name_space]; ++shard)
      operation.expected.push_back({name_space, chunk.object_hash(shard), chunk.page_count(shard)});
  }
  if (hub_.random.chance(300))
    operation.load.set_ttl_ms(static_cast<uint32_t>(hub_.random.between(100, 1500)));
  const OperationNumber number = next_operation(std::move(operation));
  operations_[number].load.set_operation(number);
  send(number);
}

void Engine::load_answered(OperationNumber number, const v1::LoadResponse& response) {
  const auto it = operations_.find(number);
  if (it == operations_.end()) return;
  if (!is_first_answer(it->second, response.SerializeAsString())) return;
  if (response.handle() == 0) return;
  Handle handle{LeaseId(response.handle()), number, {}, false};
  for (int i = 0; i < response.replicas_size(); ++i) {
    const PoolId pool(response.pools(i));
    const auto at = static_cast<size_t>(i);
    const auto own = mappings_.find(pool);
    const auto imported = imports_.find(pool);
    const bool is_mapped = own != mappings_.end() || imported != imports_.end();
    if (!is_mapped && hub_.weather.shares_pools) return give_back(handle.lease);
    hub_.judge.expect(is_mapped && at < it->second.expected.size(), [&] {
      return engine_id_ + " was given a span in a pool that it does not map";
    });
    if (hub_.judge.failed()) return;
    const Expected& expected = it->second.expected[at];
    Span span{nullptr, ReplicaId(response.replicas(i)), response.offsets(i) / kPageBytes,
              expected.count, expected.hash};
    if (own == mappings_.end()) span.imported = imported->second;
    span.pages = span.imported ? span.imported->memory.pages : own->second;
    handle.spans.push_back(std::move(span));
  }
  std::vector<ReplicaId> replicas;
  for (const Span& span : handle.spans) {
    span.pages->take_for_reading(span.first, span.count, span.replica);
    replicas.push_back(span.replica);
  }
  hub_.witness.reader_began(handle.lease, session_, through_, replicas);
  handles_.push_back(std::move(handle));
  read();
}

void Engine::read() {
  if (!running_ || is_standing_still()) return;
  for (const Handle& handle : lingering_) read_all(handle, false);
  if (!handles_.empty()) read_all(hub_.random.pick(handles_), true);
}

// Bytes may change under a reader in one case only: an operator said that it was gone.
void Engine::read_all(const Handle& handle, bool is_protected) {
  for (const Span& span : handle.spans)
    for (uint64_t i = 0; i < span.count; ++i) {
      if (span.pages->read(span.first + i) == content_of(span.hash, i)) continue;
      if (!is_protected) return hub_.judge.note_fenced_reader_saw_change();
      hub_.judge.fail(engine_id_ + " read a wrong page " + std::to_string(span.first + i) +
                      " of replica " + to_text(span.replica) + " under lease " +
                      to_text(handle.lease));
    }
}

void Engine::end_handle(Handle& handle) {
  for (const Span& span : handle.spans) span.pages->end_reading(span.first, span.count);
  hub_.witness.reader_ended(handle.lease);
}

void Engine::release_handle(size_t at) {
  read();
  end_handle(handles_[at]);
  v1::WorkerReleaseRequest request;
  *request.mutable_caller() = caller();
  request.add_handles(handles_[at].lease.value());
  if (!released_.empty() && hub_.random.chance(200))
    request.add_handles(hub_.random.pick(released_).value());  // a second time
  released_.push_back(handles_[at].lease);
  if (released_.size() > 4) released_.erase(released_.begin());
  handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(at));
  if (!joined_) return;
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.release(call, request, now); },
               [](const Result<worker::Reply>&) {});
}

void Engine::release() {
  if (!is_joined() || is_standing_still() || handles_.empty()) return;
  release_handle(hub_.random.below(handles_.size()));
}

void Engine::stop_reading(OperationNumber number, LeaseId lease) {
  for (size_t i = 0; i < handles_.size(); ++i)
    if (handles_[i].lease == lease) return release_handle(i);
  const auto it = operations_.find(number);
  if (it == operations_.end() || !it->second.is_pending) return give_back(lease);
  it->second.is_poisoned = true;
  worker_.poison(join_, number);
}

void Engine::renew() {
  if (!is_joined() || is_standing_still() || handles_.empty()) return;
  v1::WorkerRenewRequest request;
  *request.mutable_caller() = caller();
  request.add_handles(hub_.random.pick(handles_).lease.value());
  request.set_ttl_ms(static_cast<uint32_t>(hub_.random.between(0, 3000)));
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.renew(call, request, now); },
               [this, here = still_here()](const Result<worker::Reply>& reply) {
                 if (here() && !reply) call_failed(reply.error());
               });
}

void Engine::probe() {
  if (!is_joined() || is_standing_still()) return;
  const size_t name_space = hub_.random.below(kNamespaceCount);
  if (!has_namespace(name_space)) return;
  v1::WorkerProbeRequest request;
  *request.mutable_caller() = caller();
  request.set_namespace_id(namespace_ids_[name_space]);
  const uint64_t chunks = 1 + hub_.random.below(kItemsMax);
  for (uint64_t i = 0; i < chunks; ++i)
    request.mutable_digests()->append(random_chunk(name_space).digest());
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.probe(call, request, now); },
               [this, chunks, here = still_here()](const Result<worker::Reply>& reply) {
                 if (!here()) return;
                 if (!reply) return call_failed(reply.error());
                 const auto& answer = std::get<v1::ProbeResponse>(*reply);
                 hub_.judge.expect(answer.usable_chunks() <= chunks &&
                                       answer.usable_chunks() == answer.classes().size(),
                                   [&] { return engine_id_ + ": a probe answered nonsense"; });
               });
}

}  // namespace berth::sim
