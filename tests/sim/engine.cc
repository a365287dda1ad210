// The engine's process and its attachment.
#include "tests/sim/engine.h"

#include <algorithm>

namespace berth::sim {

Engine::Engine(Hub& hub, Worker& worker, std::string engine_id)
    : hub_(hub), worker_(worker), engine_id_(std::move(engine_id)) {}

// ---- The process
// -----------------------------------------------------------------------------------------------

void Engine::start() {
  if (running_) return;
  running_ = true;
  ++run_;
  has_left_ = false;
}

// The kernel unmaps, closes and frees; forked children keep what they inherited.
void Engine::crash() {
  if (!running_) return;
  hub_.judge.trace([&] { return engine_id_ + ": crashes"; });
  drop_everything();
  lingering_.clear();
  running_ = false;
  ++run_;
  scheduling_.forget_waiting();
  if (join_.valid() && worker_.process_key() == join_through_) {
    const worker::JoinId join = join_;
    hub_.schedule.after(hub_.random.between(0, 20), [this, join, key = join_through_] {
      if (worker_.process_key() == key) worker_.join_stream_ended(join);
    });
  }
  if (hub_.random.chance(200) && session_.valid()) worker_.suspect(session_);
  lose_session();
  join_ = {};
}

void Engine::fork() {
  if (!running_ || lives_.empty() || forks_.size() > 3) return;
  std::vector<std::string> names = imported_lives();
  names.insert(names.end(), lives_.begin(), lives_.end());
  for (const std::string& name : names) hub_.locks.inherit(name);
  forks_.push_back(std::move(names));
}

void Engine::end_fork() {
  if (forks_.empty()) return;
  let_go_of(std::move(forks_.back()));
  forks_.pop_back();
}

void Engine::end_all_forks() {
  while (!forks_.empty()) end_fork();
}

void Engine::let_go_of(std::vector<std::string> names) {
  for (const std::string& name : names) hub_.locks.let_go(name);
}

void Engine::drop_everything() {
  for (Store& store : stores_)
    for (Item& item : store.items) end_item(item);
  for (Handle& handle : handles_) end_handle(handle);
  stores_.clear();
  handles_.clear();
  released_.clear();
}

void Engine::operator_fenced(SessionId session) {
  if (!session.valid() || session != session_ || is_fenced_) return;
  hub_.judge.trace([&] {
    return engine_id_ + ": is fenced, and does not know it; it has " +
           std::to_string(handles_.size()) + " handles";
  });
  for (const auto& [pool, pages] : mappings_) hub_.witness.unmapped(pool);
  for (const auto& [pool, imported] : imports_) imported->stop_watching();
  is_fenced_ = true;
  for (auto& [number, operation] : operations_) operation.is_poisoned = true;
  const bool goes_on = hub_.random.chance(600);
  for (Store& store : stores_)
    for (Item& item : store.items) end_item(item);
  stores_.clear();
  for (Handle& handle : handles_) {
    end_handle(handle);
    for (const Span& span : handle.spans)
      if (span.imported) span.imported->stop_watching();
    if (!goes_on) continue;
    lingering_.push_back(handle);
    hub_.schedule.after(hub_.random.between(100, 20'000),
                        [this, lease = handle.lease] { end_lingering(lease); });
  }
  handles_.clear();
}

void Engine::end_lingering(LeaseId lease) {
  std::erase_if(lingering_, [&](const Handle& handle) {
    if (handle.lease != lease) return false;
    read_all(handle, false);
    return true;
  });
}

void Engine::unmap() {
  if (!is_fenced_)
    for (const auto& [pool, pages] : mappings_) hub_.witness.unmapped(pool);
  mappings_.clear();
  imports_.clear();
}

void Engine::lose_session() {
  drop_everything();
  operations_.clear();
  unmap();
  namespace_ids_ = {};
  joined_ = false;
  session_ = {};
  token_.clear();
  through_ = 0;
  last_operation_ = low_water_ = 0;
  is_fenced_ = false;
  ++sessions_;
  let_go_of(std::exchange(lives_, {}));
}

// ---- Joining
// ---------------------------------------------------------------------------------------------------

void Engine::join() {
  if (!running_) return start();
  if (join_.valid() || is_standing_still() || !worker_.is_running()) return;
  v1::JoinHello hello;
  hello.mutable_versions()->set_newest(worker::kProtocolNewest);
  hello.mutable_versions()->set_oldest(worker::kProtocolOldest);
  hello.set_engine_id(engine_id_);
  if (session_.valid() && hub_.random.chance(150)) lose_session();  // it does not bother
  if (session_.valid()) {
    hello.set_resume_session(session_.value());
    hello.set_resume_token(token_);
  }
  join_ = worker_.join(*this, hello);
  join_through_ = worker_.process_key();
}

bool Engine::welcomed(uint64_t run, ProcessKey key, worker::JoinId join,
                      const v1::JoinWelcome& welcome,
                      const std::vector<std::shared_ptr<Pages>>& memory,
                      const std::string& life_name) {
  if (run != run_ || !running_ || join != join_ || key != join_through_) return false;
  const SessionId session(welcome.client_session());
  const bool same_memory = session == session_ && key == through_;
  std::vector<std::string> old = std::exchange(lives_, {life_name});
  if (!same_memory) {
    // What lies in a dead worker's memory is of no use any more: it is unmapped, and only then is
    // its life lock let go.
    drop_everything();
    operations_.clear();  // whoever would answer them is gone
    unmap();
    namespace_ids_ = {};
  }
  if (session != session_) {
    operations_.clear();
    last_operation_ = low_water_ = 0;
    is_fenced_ = hub_.witness.was_fenced_by_operator(session);  // while its join was under way
    ++sessions_;
  }
  hub_.judge.trace([&] {
    return engine_id_ + ": joined as " + std::to_string(session.value()) +
           (same_memory ? " again" : "");
  });
  session_ = session;
  token_ = welcome.token();
  worker_incarnation_ = welcome.worker_incarnation();
  through_ = key;
  joined_ = true;
  last_operation_ = std::max(last_operation_, welcome.operation_low_water());
  unmap();
  for (int i = 0; i < welcome.pools_size(); ++i) {
    const PoolId pool(welcome.pools(i).pool());
    mappings_[pool] = memory[static_cast<size_t>(i)];
    if (!is_fenced_) hub_.witness.mapped(pool);
  }
  // The old locks go at once, or some time later.
  hub_.schedule.after(hub_.random.chance(500) ? 0 : hub_.random.between(1, 2000),
                      [this, old] { let_go_of(old); });
  open_namespaces();
  return true;
}

void Engine::join_ended(uint64_t run, ProcessKey key, worker::JoinId join, const Error& error) {
  scheduling_.run([this, run, key, join, error] {
    if (run != run_ || !running_ || join != join_ || key != join_through_) return;
    hub_.judge.trace([&] { return engine_id_ + ": its stream ended: " + error.message; });
    join_ = {};
    joined_ = false;
    // A worker that is gone, or stops, can be joined again under the same session.
    if (error.reason != Reason::kUnavailable && error.reason != Reason::kLimitReached)
      lose_session();
  });
}

void Engine::break_stream() {
  if (!join_.valid() || is_standing_still()) return;
  if (worker_.process_key() == join_through_) worker_.join_stream_ended(join_);
  join_ = {};
  joined_ = false;
}

void Engine::pushed(uint64_t run, ProcessKey key, worker::JoinId join,
                    const v1::JoinResponse& message) {
  scheduling_.run([this, run, key, join, message] {
    if (run != run_ || !running_ || join != join_ || key != join_through_) return;
    if (message.has_pool_gone()) imports_.erase(PoolId(message.pool_gone().pool()));
    if (message.has_cancel()) stop_writing(message.cancel().operation());
    if (message.has_revoke())
      stop_reading(message.revoke().operation(), LeaseId(message.revoke().handle()));
    if (message.has_rejoin()) {
      hub_.judge.trace([&] { return engine_id_ + ": must rejoin: " + message.rejoin().reason(); });
      leave();
    }
  });
}

void Engine::leave() {
  if (!joined_ || is_standing_still()) return;
  drop_everything();
  v1::LeaveRequest request;
  *request.mutable_caller() = caller();
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.leave(call, request, now); },
               [](const Result<worker::Reply>&) {});
  const worker::JoinId join = std::exchange(join_, {});
  // Its stream may end before the call arrives, or stay open until the worker ends it.
  if (hub_.random.chance(500) && worker_.process_key() == join_through_)
    worker_.join_stream_ended(join);
  lose_session();
}

v1::ClientCaller Engine::caller() {
  if (hub_.random.chance(400)) {
    OperationNumber mark = last_operation_;
    for (const auto& [number, operation] : operations_)
      if (operation.is_pending) {
        mark = std::min(mark, number - 1);
        break;
      }
    if (mark > low_water_) {
      low_water_ = mark;
      operations_.erase(operations_.begin(), operations_.upper_bound(mark));
    }
  }
  v1::ClientCaller caller;
  caller.set_client_session(session_.value());
  caller.set_token(token_);
  caller.set_worker_incarnation(worker_incarnation_);
  caller.set_operation_low_water(low_water_);
  return caller;
}

std::function<bool()> Engine::still_here() const {
  return [this, run = run_, sessions = sessions_] {
    return running_ && run == run_ && sessions == sessions_;
  };
}

void Engine::open_namespaces() {
  for (size_t i = 0; i < kNamespaceCount; ++i) {
    v1::WorkerOpenNamespaceRequest request;
    *request.mutable_caller() = caller();
    *request.mutable_spec() = namespace_spec(i);
    worker_.call(
        [request](worker::Agent& agent, worker::CallId call, Time now) {
          agent.open_namespace(call, request, now);
        },
        [this, i, here = still_here(), through = through_](const Result<worker::Reply>& reply) {
          if (!here() || through != through_ || !reply) return;
          namespace_ids_[i] = std::get<v1::OpenNamespaceResponse>(*reply).namespace_id();
        });
  }
}

void Engine::call_failed(const Error& error) {
  if (error.reason == Reason::kUnknownNamespace) {
    namespace_ids_ = {};
    open_namespaces();
  }
  if (error.reason == Reason::kRejoin && joined_) {
    const worker::JoinId join = std::exchange(join_, {});
    if (worker_.process_key() == join_through_) worker_.join_stream_ended(join);
    lose_session();
  }
}

Chunk Engine::random_chunk(size_t name_space) {
  // Some are wanted more often than others.
  const uint64_t count = hub_.weather.chunk_count;
  return {name_space, std::min(hub_.random.below(count), hub_.random.below(count))};
}

bool Engine::wind_up() {
  if (!running_) return true;
  if (is_standing_still()) go_on();
  if (session_.valid() && !joined_) {
    join();
    return false;
  }
  if (!joined_) {
    if (join_.valid()) return false;  // a join is under way
    running_ = false;
    ++run_;
    return true;
  }
  for (const auto& [number, operation] : operations_)
    if (operation.is_pending) {
      if (hub_.random.chance(300)) send(number);
      return false;
    }
  leave();
  return false;
}

std::string Engine::standing() const {
  std::string text = engine_id_ + " does not get away:";
  if (joined_) text += " it is joined";
  if (join_.valid()) text += ", its stream is open";
  if (session_.valid()) text += ", it has a session";
  for (const auto& [number, operation] : operations_)
    if (operation.is_pending)
      text += ", operation " + std::to_string(number) + " of kind " +
              std::to_string(static_cast<int>(operation.kind)) + " waits for its answer";
  return text;
}

}  // namespace berth::sim
