// The engines' side of the rig: what they ask of the agent, and what they hear.
#include "tests/unit/session/agent_rig.h"

namespace berth::worker {
namespace {

std::string digests(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += std::string(16, static_cast<char>('a' + i % 26));
  return bytes;
}

template <class Code>
std::vector<Code> codes_of(const std::string& bytes) {
  std::vector<Code> codes;
  for (const char byte : bytes) codes.push_back(static_cast<Code>(byte));
  return codes;
}

}  // namespace

JoinId AgentRig::start_join(const std::string& engine_id, uint64_t resume, std::string token) {
  Agent::Join join;
  join.join = JoinId(++joins_made_);
  join.hello.mutable_versions()->set_newest(1);
  join.hello.mutable_versions()->set_oldest(1);
  join.hello.set_engine_id(engine_id);
  join.hello.set_resume_session(resume);
  join.hello.set_resume_token(token);
  join.life_name = "w0." + std::to_string(joins_made_) + ".life";
  join.request_token = std::string(16, static_cast<char>(joins_made_));
  join.ticket = std::string(16, 'k');
  agent->client_joined(join, now);
  settle();
  return join.join;
}

Engine AgentRig::finish_join(JoinId join, uint64_t session) {
  const v1::LinkRequest request = take_sent(v1::LinkRequest::kOpenClient);
  v1::LinkResponse message;
  message.set_correlation(request.correlation());
  message.mutable_open_client()->set_session(session);
  message.mutable_open_client()->set_token("token" + std::to_string(session));
  say(message);
  REQUIRE_FALSE(welcomes.empty());
  const Welcome& welcome = welcomes.back();
  REQUIRE(welcome.join == join);
  Engine engine{join, session, welcome.message.token(), request.open_client().life_name(), {}};
  for (const auto& pool : welcome.message.pools()) engine.pools.push_back(pool.pool());
  return engine;
}

Engine AgentRig::join(const std::string& engine_id) {
  const JoinId id = start_join(engine_id);
  const Engine engine = finish_join(id, ++sessions_made_);
  known_clients.push_back(engine.session);
  if (ledger.pools().empty()) return engine;
  v1::WorkerOpenNamespaceRequest request;
  *request.mutable_caller() = caller(engine);
  agent->open_namespace(next_call(), request, now);
  settle();
  v1::LinkResponse message;
  message.set_correlation(take_sent(v1::LinkRequest::kOpenNamespace).correlation());
  message.mutable_open_namespace()->set_namespace_id(kNamespace);
  message.mutable_open_namespace()->set_fingerprint(std::string(16, 'f'));
  message.mutable_open_namespace()->mutable_spec()->set_digest_bytes(16);
  say(message);
  return engine;
}

v1::ClientCaller AgentRig::caller(const Engine& engine) const {
  v1::ClientCaller caller;
  caller.set_client_session(engine.session);
  caller.set_token(engine.token);
  caller.set_worker_incarnation(kProcess);
  caller.set_operation_low_water(low_water);
  return caller;
}

CallId AgentRig::begin_store(const Engine& engine, uint64_t operation, size_t items,
                             uint64_t size) {
  v1::BeginStoreRequest request;
  request.set_operation(operation);
  request.set_namespace_id(kNamespace);
  request.set_digests(digests(items));
  request.add_sizes(size);
  return ask(engine, request, &Agent::begin_store);
}

CallId AgentRig::finish_store(const Engine& engine, uint64_t operation,
                              std::vector<uint64_t> replicas) {
  v1::FinishStoreRequest request;
  *request.mutable_caller() = caller(engine);
  request.set_operation(operation);
  for (const uint64_t id : replicas) request.add_replicas(id);
  const CallId call = next_call();
  agent->finish_store(call, request, now + seconds(2), now);
  settle();
  return call;
}

CallId AgentRig::abort_store(const Engine& engine, std::vector<uint64_t> replicas) {
  v1::AbortStoreRequest request;
  for (const uint64_t id : replicas) request.add_replicas(id);
  return ask(engine, request, &Agent::abort_store);
}

CallId AgentRig::load(const Engine& engine, uint64_t operation, size_t chunks) {
  v1::LoadRequest request;
  request.set_operation(operation);
  request.set_namespace_id(kNamespace);
  request.set_digests(digests(chunks));
  return ask(engine, request, &Agent::load);
}

CallId AgentRig::probe(const Engine& engine, size_t chunks) {
  v1::WorkerProbeRequest request;
  request.set_namespace_id(kNamespace);
  request.set_digests(digests(chunks));
  return ask(engine, request, &Agent::probe);
}

CallId AgentRig::release(const Engine& engine, uint64_t handle) {
  v1::WorkerReleaseRequest request;
  request.add_handles(handle);
  return ask(engine, request, &Agent::release);
}

CallId AgentRig::leave(const Engine& engine) {
  v1::LeaveRequest request;
  return ask(engine, request, &Agent::leave);
}

uint64_t AgentRig::ready(const Engine& engine, uint64_t operation, uint64_t replica) {
  begin_store(engine, operation, 1);
  answer_reserve({v1::STORE_CODE_GRANTED}, replica);
  finish_store(engine, operation + 1, {replica});
  answer_commit({v1::COMMIT_CODE_COMMITTED});
  return replica;
}

std::vector<v1::StoreCode> AgentRig::store_codes(CallId call) const {
  return codes_of<v1::StoreCode>(reply<v1::BeginStoreResponse>(call).codes());
}
std::vector<v1::CommitCode> AgentRig::commit_codes(CallId call) const {
  return codes_of<v1::CommitCode>(reply<v1::FinishStoreResponse>(call).codes());
}

std::vector<v1::JoinResponse> AgentRig::pushed_to(const Engine& engine) const {
  std::vector<v1::JoinResponse> messages;
  for (const Push& push : pushes) {
    if (push.join == engine.join) messages.push_back(push.message);
  }
  return messages;
}

bool AgentRig::was_told(const Engine& engine, v1::JoinResponse::BodyCase kind) const {
  for (const auto& message : pushed_to(engine)) {
    if (message.body_case() == kind) return true;
  }
  return false;
}

void AgentRig::life(const std::string& name, Agent::Life life) {
  agent->life_tested(name, life, now);
  settle();
}

}  // namespace berth::worker
