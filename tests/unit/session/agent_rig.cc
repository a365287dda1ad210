#include "tests/unit/session/agent_rig.h"

namespace berth::worker {
namespace {

template <class Code>
std::string bytes_of(const std::vector<Code>& codes) {
  std::string bytes;
  for (const Code code : codes) bytes.push_back(static_cast<char>(code));
  return bytes;
}

}  // namespace

AgentPool host_pool(const std::string& name, uint64_t pages) {
  AgentPool pool;
  pool.spec.set_name(name);
  pool.spec.set_medium(v1::MEDIUM_CPU);
  pool.spec.set_tier(v1::TIER_L1);
  pool.spec.set_scope(v1::SCOPE_HOST);
  pool.spec.set_capacity_bytes(pages * kPage);
  pool.spec.set_page_bytes(kPage);
  pool.spec.set_backing_bytes(pages * kPage);
  pool.map_bytes = pages * kPage;
  return pool;
}

AgentPool process_pool(const std::string& name, uint64_t pages, const std::string& engine) {
  AgentPool pool = host_pool(name, pages);
  pool.spec.set_scope(v1::SCOPE_PROCESS);
  pool.spec.set_engine(engine);
  return pool;
}

AgentRig::AgentRig(RigOptions options) : options_(std::move(options)) {
  AgentOptions agent_options;
  agent_options.worker_name = "w0";
  agent_options.node = "host";
  agent_options.boot_id = std::string(16, 'b');
  agent_options.request_token = std::string(16, 'r');
  agent_options.process = kProcess;
  agent_options.seed = 1;
  agent_options.clients_max = options_.clients_max;
  agent_options.release_within = options_.release_within;
  agent_options.pools = options_.pools;
  if (agent_options.pools.empty()) agent_options.pools.push_back(host_pool("cpu", 16));
  agent.emplace(std::move(agent_options), ledger);
}

struct AgentRig::Filer {
  AgentRig& rig;
  void operator()(CallOpenSession& a) {
    rig.connection = a.connection;
    rig.session_wanted = a.request;
  }
  void operator()(OpenReattach& a) {
    rig.connection = a.connection;
    rig.reattach_sent.clear();
  }
  void operator()(SendReattach& a) { rig.reattach_sent.push_back(a.message); }
  void operator()(EndReattach&) {}
  void operator()(OpenLink&) {}
  void operator()(SendLink& a) { rig.link_sent.push_back(a.message); }
  void operator()(CloseConnection&) {}
  void operator()(Answer& a) {
    REQUIRE(rig.answers.count(a.call) == 0);
    rig.answers.emplace(a.call, std::move(a.reply));
  }
  void operator()(Welcome& a) { rig.welcomes.push_back(a); }
  void operator()(Push& a) { rig.pushes.push_back(a); }
  void operator()(EndJoin& a) { rig.ended_joins.push_back(a); }
  void operator()(Introduce& a) { rig.introduced.push_back(a.session); }
  void operator()(LockExport& a) { rig.locks_wanted.push_back(a); }
  void operator()(PassExport& a) { rig.passed.push_back(a); }
  void operator()(DiscardLock& a) { rig.discarded.push_back(a.life_name); }
  void operator()(GrantImport& a) { rig.granted.push_back(a); }
  void operator()(DropImport& a) { rig.dropped.push_back(a.import); }
  void operator()(TestLife& a) { rig.life_tests.push_back(a.life_name); }
  void operator()(Fatal& a) { rig.fatals.push_back(a.error); }
  void operator()(Note& a) { rig.notes.push_back(a.event); }
};

void AgentRig::settle() {
  for (Action& action : agent->take_actions()) std::visit(Filer{*this}, action);
  REQUIRE(agent->check_invariants() == "");
}

// ---- The server ----

void AgentRig::pass(Duration duration) {
  for (const Time end = now + duration; now < end;) {
    now = now + milliseconds(50);
    agent->tick(now);
    settle();
    if (agent->is_attached() && !is_silent) {
      v1::LinkResponse alive;
      alive.mutable_heartbeat_seen();
      say(alive);
    }
  }
}

void AgentRig::open_session() {
  REQUIRE(session_wanted);
  session_wanted.reset();
  v1::OpenSessionResponse answer;
  answer.set_version(1);
  answer.mutable_store()->set_store_id(store_id);
  answer.mutable_store()->set_epoch(epoch);
  answer.set_session(kWorkerSession);
  answer.set_token(std::string(16, 't'));
  answer.set_incarnation(1);
  answer.set_heartbeat_interval_ms(1000);
  answer.set_heartbeat_deadline_ms(5000);
  answer.mutable_limits()->set_batch_items_max(64);
  answer.mutable_limits()->set_operations_max(options_.operations_max);
  answer.mutable_limits()->set_object_bytes_max(1 << 20);
  agent->session_opened(connection, answer, now);
  settle();
}

void AgentRig::welcome_reattach(bool foreign) {
  v1::ReattachResponse message;
  message.mutable_welcome()->mutable_store()->set_store_id(store_id);
  message.mutable_welcome()->mutable_store()->set_epoch(epoch);
  message.mutable_welcome()->set_incarnation(2);
  message.mutable_welcome()->set_foreign_store(foreign);
  for (const uint64_t id : known_clients) message.mutable_welcome()->add_clients()->set_session(id);
  agent->reattach_received(connection, message, now);
  settle();
}

void AgentRig::judge_all(v1::LedgerVerdict verdict) {
  size_t judged = 0;
  while (true) {
    size_t chunks = 0;
    for (const auto& sent : std::vector(reattach_sent)) {
      if (!sent.has_chunk() || chunks++ < judged) continue;
      ++judged;
      v1::ReattachResponse message;
      message.mutable_verdicts();
      for (int i = 0; i < sent.chunk().replicas_size(); ++i) {
        message.mutable_verdicts()->add_verdicts(verdict);
      }
      agent->reattach_received(connection, message, now);
      settle();
    }
    if (!reattach_sent.empty() && reattach_sent.back().has_end()) return;
  }
}

void AgentRig::end_reattach() {
  v1::ReattachResponse message;
  message.mutable_done();
  agent->reattach_received(connection, message, now);
  settle();
}

void AgentRig::welcome_link() {
  v1::LinkResponse message;
  message.mutable_welcome()->mutable_store()->set_store_id(store_id);
  message.mutable_welcome()->mutable_store()->set_epoch(epoch);
  agent->link_received(connection, message, now);
  settle();
}

void AgentRig::answer_pools() {
  std::vector<uint64_t> correlations;
  while (count_sent(v1::LinkRequest::kRegisterPool) > 0) {
    correlations.insert(correlations.begin(),
                        take_sent(v1::LinkRequest::kRegisterPool).correlation());
  }
  for (const uint64_t correlation : correlations) {
    v1::LinkResponse message;
    message.set_correlation(correlation);
    message.mutable_register_pool()->set_pool(next_pool++);
    say(message);
  }
}

void AgentRig::attach() {
  agent->tick(now);
  settle();
  while (agent->stage_name() == "waiting") pass(milliseconds(50));
  if (session_wanted) open_session();
  welcome_reattach();
  judge_all(v1::LEDGER_VERDICT_KEEP);
  end_reattach();
  welcome_link();
  answer_pools();
  REQUIRE(agent->is_attached());
}

void AgentRig::lose_link() {
  agent->connection_failed(connection, {Reason::kUnavailable, "the connection broke"}, now);
  settle();
  link_sent.clear();
}

size_t AgentRig::count_sent(v1::LinkRequest::BodyCase kind) const {
  size_t count = 0;
  for (const auto& message : link_sent) count += message.body_case() == kind ? 1 : 0;
  return count;
}

v1::LinkRequest AgentRig::take_sent(v1::LinkRequest::BodyCase kind) {
  for (auto it = link_sent.rbegin(); it != link_sent.rend(); ++it) {
    if (it->body_case() != kind) continue;
    const v1::LinkRequest message = *it;
    link_sent.erase(std::next(it).base());
    return message;
  }
  FAIL("no such request was sent: " << kind);
  return {};
}

void AgentRig::say(v1::LinkResponse message) {
  agent->link_received(connection, message, now);
  settle();
}

void AgentRig::say_error(uint64_t correlation, Reason reason) {
  v1::LinkResponse message;
  message.set_correlation(correlation);
  v1::ErrorInfo info;
  info.set_reason(std::string(name_of(reason)));
  info.set_domain("berth");
  message.mutable_error()->set_code(static_cast<int>(row_of(reason).code));
  message.mutable_error()->set_message("refused");
  message.mutable_error()->add_details()->set_value(info.SerializeAsString());
  say(message);
}

v1::LinkRequest AgentRig::answer_reserve(const std::vector<v1::StoreCode>& codes, uint64_t first) {
  const v1::LinkRequest request = take_sent(v1::LinkRequest::kReserve);
  v1::LinkResponse message;
  message.set_correlation(request.correlation());
  message.mutable_reserve()->set_codes(bytes_of(codes));
  message.mutable_reserve()->set_first_replica(first);
  for (const auto code : codes) {
    if (code == v1::STORE_CODE_GRANTED) message.mutable_reserve()->add_pools(kPoolId);
  }
  say(message);
  return request;
}

void AgentRig::answer_commit(const std::vector<v1::CommitCode>& codes) {
  v1::LinkResponse message;
  message.set_correlation(take_sent(v1::LinkRequest::kCommit).correlation());
  message.mutable_commit()->set_codes(bytes_of(codes));
  say(message);
}

void AgentRig::answer_abort() {
  v1::LinkResponse message;
  message.set_correlation(take_sent(v1::LinkRequest::kAbort).correlation());
  message.mutable_abort();
  say(message);
}

void AgentRig::answer_release() {
  v1::LinkResponse message;
  message.set_correlation(take_sent(v1::LinkRequest::kRelease).correlation());
  message.mutable_release();
  say(message);
}

void AgentRig::answer_acquire(uint64_t lease, const std::vector<Place>& chunks) {
  v1::LinkResponse message;
  message.set_correlation(take_sent(v1::LinkRequest::kAcquire).correlation());
  v1::AcquireResponse& acquire = *message.mutable_acquire();
  acquire.set_lease(lease);
  acquire.set_chunks(static_cast<uint32_t>(chunks.size()));
  acquire.set_classes(std::string(chunks.size(), static_cast<char>(v1::CHUNK_CLASS_L1_LOCAL)));
  for (const Place& place : chunks) {
    acquire.add_replicas(place.replica);
    acquire.add_pools(place.pool);
    acquire.add_offsets(place.offset);
    acquire.add_sizes(place.size);
  }
  say(message);
}

void AgentRig::reclaim(uint64_t replica) {
  v1::LinkResponse message;
  message.mutable_reclaim()->add_replicas(replica);
  say(message);
}

void AgentRig::cancel(const Engine& engine, uint64_t operation, std::vector<uint64_t> replicas) {
  v1::LinkResponse message;
  message.mutable_cancel()->set_client_session(engine.session);
  message.mutable_cancel()->set_operation(operation);
  for (const uint64_t id : replicas) message.mutable_cancel()->add_replicas(id);
  say(message);
}

void AgentRig::revoke(const Engine& engine, uint64_t operation, uint64_t lease) {
  v1::LinkResponse message;
  message.mutable_revoke()->set_client_session(engine.session);
  message.mutable_revoke()->set_operation(operation);
  message.mutable_revoke()->set_lease(lease);
  say(message);
}

std::vector<uint64_t> AgentRig::take_acknowledged() {
  std::vector<uint64_t> ids;
  while (count_sent(v1::LinkRequest::kReclaimAck) > 0) {
    const v1::LinkRequest message = take_sent(v1::LinkRequest::kReclaimAck);
    for (const uint64_t id : message.reclaim_ack().replicas()) ids.push_back(id);
  }
  return ids;
}

}  // namespace berth::worker
