#include "tests/sim/engine.h"
#include "tests/sim/objects.h"
#include "tests/sim/worker_process.h"
#include "worker/session/wire.h"

namespace berth::sim {
namespace {

constexpr int64_t kTickEvery = 50;
constexpr size_t kPoolCountMax = 2;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

v1::PoolSpec pool_spec(const Weather& weather, size_t index) {
  v1::PoolSpec spec;
  spec.set_name(index == 0 ? "shared" : "private");
  spec.set_medium(v1::MEDIUM_CPU);
  spec.set_tier(v1::TIER_L1);
  spec.set_scope(index == 0 ? v1::SCOPE_HOST : v1::SCOPE_PROCESS);
  spec.set_capacity_bytes(weather.pool_pages * kPageBytes);
  spec.set_page_bytes(kPageBytes);
  spec.set_budget_bytes(weather.budget_pages * kPageBytes);
  spec.set_backing_bytes(weather.pool_pages * kPageBytes);
  return spec;
}

}  // namespace

Worker::Worker(Hub& hub, size_t index, std::string node)
    : hub_(hub), index_(index), node_(std::move(node)) {}
Worker::~Worker() = default;

bool Worker::is_standing_still() const { return process_ && process_->scheduling.is_stopped(); }
ProcessKey Worker::process_key() const { return process_ ? process_->key : 0; }
const worker::Agent* Worker::agent() const { return process_ ? &process_->agent : nullptr; }
const pool::Ledger* Worker::ledger() const { return process_ ? &process_->ledger : nullptr; }
bool Worker::lives(uint64_t number) const { return process_ && process_->number == number; }

// ---- The process
// ------------------------------------------------------------------------------------------------

void Worker::start(BootId boot) {
  if (process_) return;
  const Weather& weather = hub_.weather;
  const Id128 token = hub_.random.id128();
  worker::AgentOptions options;
  options.worker_name = "w" + std::to_string(index_);
  options.node = node_;
  options.boot_id = worker::to_bytes(boot);
  options.request_token = worker::to_bytes(token);
  options.process = hub_.random.next();
  options.seed = hub_.random.next();
  options.retry_after = milliseconds(500);
  options.retry_pause = milliseconds(100);
  options.probe_within = milliseconds(500);
  options.attach_within = seconds(3);
  options.backoff_min = milliseconds(20);
  options.backoff_max = milliseconds(500);
  options.pool_retry_every = milliseconds(300);
  options.reattach_chunk_max = weather.reattach_chunk;
  options.reattach_window = weather.reattach_window;
  options.clients_max = 16;
  options.export_test_every = milliseconds(200);
  options.export_retry_every = milliseconds(500);
  const size_t pools = weather.private_pool ? kPoolCountMax : 1;
  const uint64_t backing = pools * weather.pool_pages * kPageBytes;
  options.host_memory_bytes = weather.tight_host ? backing * weather.worker_count : 1ull << 40;
  for (size_t i = 0; i < pools; ++i)
    options.pools.push_back({pool_spec(weather, i), weather.pool_pages * kPageBytes});

  process_ = std::make_unique<Process>(options);
  process_->number = ++processes_;
  process_->key = token.low;
  for (size_t i = 0; i < pools; ++i)
    process_->memory.push_back(std::make_shared<Pages>(hub_.judge, weather.pool_pages));
  hub_.witness.process_started(process_->key, &process_->ledger, &process_->agent);
  hub_.judge.trace([&] { return options.worker_name + ": starts"; });
  input([](worker::Agent& agent, Time now) { agent.tick(now); });
  tick_later();
}

void Worker::tick_later() {
  hub_.schedule.after(kTickEvery, [this, number = process_->number] {
    if (!lives(number)) return;
    input([](worker::Agent& agent, Time now) { agent.tick(now); });
    if (lives(number)) plant_reuse();
    if (lives(number)) find_neighbours();
    if (lives(number)) tick_later();
  });
}

void Worker::kill() {
  if (!process_) return;
  hub_.judge.trace([&] { return "w" + std::to_string(index_) + ": dies"; });
  hub_.witness.process_died(process_->key);
  const std::unique_ptr<Process> dead = std::move(process_);
  for (const auto& [stream, connection] : dead->connections)
    stream->cut(hub_.random.between(0, 300), 0);
  leave_neighbours(*dead);
  const Error error{Reason::kUnavailable, "the worker is gone"};
  for (const auto& [id, join] : dead->joins) {
    if (!join.is_welcome) hub_.locks.let_go(join.life_name);
    hub_.schedule.after(hub_.random.between(0, 30),
                        [engine = join.engine, run = join.engine_run, id = id, error,
                         key = dead->key] { engine->join_ended(run, key, id, error); });
  }
  for (const auto& [id, answered] : dead->calls)
    hub_.schedule.after(hub_.random.between(0, 30),
                        [answered = answered, error] { answered(tl::unexpected(error)); });
}

void Worker::stand_still() {
  if (process_) process_->scheduling.stop();
}
void Worker::go_on() {
  if (process_) process_->scheduling.go_on();
}

void Worker::input(Input what) {
  process_->scheduling.run([this, number = process_->number, what = std::move(what)] {
    if (!lives(number) || hub_.judge.failed()) return;
    what(process_->agent, Time{hub_.schedule.now()});
    perform_all();
  });
}

void Worker::perform_all() {
  const uint64_t number = process_->number;
  bool did_something = hub_.random.chance(100);  // most ticks change nothing
  while (lives(number)) {
    std::vector<worker::Action> actions = process_->agent.take_actions();
    if (actions.empty()) break;
    did_something = true;
    for (worker::Action& action : actions)
      if (lives(number)) perform(action);
  }
  if (!lives(number) || !did_something) return;
  const std::string broken = process_->agent.check_invariants();  // the ledger's, too
  hub_.judge.expect(broken.empty(),
                    [&] { return "worker w" + std::to_string(index_) + ": " + broken; });
}

// ---- What the agent wants done
// -----------------------------------------------------------------------------------

void Worker::perform(worker::Action& action) {
  std::visit(
      Overloaded{
          [&](const worker::CallOpenSession& a) { open_session(a); },
          [&](const worker::OpenReattach& a) {
            process_->reattach = make_stream(a.connection);
            process_->reattach->send(
                Side::kServer,
                [&server = hub_.server, s = process_->reattach] { server.open_reattach(s); });
          },
          [&](worker::SendReattach& a) {
            if (!process_->reattach) return;
            process_->reattach->send(Side::kServer, [&server = hub_.server, s = process_->reattach,
                                                     message = std::move(a.message)] {
              server.reattach_received(s, message);
            });
          },
          [&](const worker::EndReattach&) {},
          [&](const worker::OpenLink& a) {
            process_->link = make_stream(a.connection);
            process_->link->send(Side::kServer, [&server = hub_.server, s = process_->link] {
              server.open_link(s);
            });
          },
          [&](worker::SendLink& a) {
            if (!process_->link) return;
            process_->link->send(
                Side::kServer,
                [&server = hub_.server, s = process_->link, message = std::move(a.message)] {
                  server.link_received(s, message);
                },
                a.urgency == worker::Urgency::kSoon ? Stream::Order::kFirst
                                                    : Stream::Order::kInOrder);
          },
          [&](const worker::CloseConnection& a) {
            for (auto it = process_->connections.begin(); it != process_->connections.end();) {
              if (it->second == a.connection)
                it->first->close(Side::kWorker, {Reason::kCancelled, "closed by the worker"});
              it = it->second <= a.connection ? process_->connections.erase(it) : std::next(it);
            }
            process_->reattach.reset();
            process_->link.reset();
          },
          [&](worker::Answer& a) {
            auto found = process_->calls.extract(a.call);
            if (found.empty()) return;
            hub_.schedule.after(hub_.random.between(0, 2),
                                [answered = std::move(found.mapped()), reply = std::move(a.reply)] {
                                  answered(reply);
                                });
          },
          [&](worker::Welcome& a) { welcome(a); },
          [&](worker::Push& a) {
            const auto it = process_->joins.find(a.join);
            if (it == process_->joins.end()) return;
            hub_.schedule.after(
                it->second.push_delay(hub_),
                [engine = it->second.engine, run = it->second.engine_run, key = process_->key,
                 join = a.join,
                 message = std::move(a.message)] { engine->pushed(run, key, join, message); });
          },
          [&](const worker::EndJoin& a) { end_join(a); },
          [&](const worker::Introduce& a) { introduce(a); },
          [&](const worker::LockExport& a) { lock_export(a); },
          [&](worker::PassExport& a) { pass_export(std::move(a)); },
          [&](const worker::DiscardLock& a) { discard_lock(a.life_name); },
          [&](const worker::GrantImport& a) { grant_import(a); },
          [&](const worker::DropImport& a) { drop_import(a.import); },
          [&](const worker::TestLife& a) { test_life(a.life_name); },
          [&](const worker::Fatal& a) {
            // After an operator's fence it may not take its own name back by itself.
            if (a.error.reason == Reason::kNameInUse && hub_.witness.has_operator_fenced())
              return hub_.schedule.after(0, [this, number = process_->number] {
                if (lives(number)) on_gave_up();
              });
            hub_.judge.fail("worker w" + std::to_string(index_) + " gives up: " + a.error.message);
          },
          [&](const worker::Note& a) { judge_note(a); },
      },
      action);
}

void Worker::open_session(const worker::CallOpenSession& call) {
  const uint64_t number = process_->number;
  const worker::ConnectionId connection = call.connection;
  const auto done = std::make_shared<bool>(false);
  const auto answered = [this, number, connection,
                         done](const Result<v1::OpenSessionResponse>& answer) {
    if (std::exchange(*done, true) || !lives(number)) return;
    input([=](worker::Agent& agent, Time now) { agent.session_opened(connection, answer, now); });
  };
  const bool doubled = hub_.random.chance(hub_.weather.call_doubled);
  for (int copy = 0; copy < (doubled ? 2 : 1); ++copy) {
    const bool request_lost = hub_.random.chance(hub_.weather.call_lost);
    const bool answer_lost = hub_.random.chance(hub_.weather.call_lost);
    // What its sender put into the network arrives, even long after the sender died.
    const bool is_late = hub_.random.chance(hub_.weather.call_late);
    const int64_t there = hub_.random.between(0, is_late ? 6000 : hub_.weather.latency_max);
    const int64_t back = hub_.random.between(0, hub_.weather.latency_max);
    hub_.schedule.after(there, [this, number, request = call.request, request_lost, answer_lost,
                                back, is_late, answered] {
      if (!lives(number) && !is_late) return;  // its connection is reset
      const auto later = [this, back, answered](const Result<v1::OpenSessionResponse>& answer) {
        hub_.schedule.after(back, [answered, answer] { answered(answer); });
      };
      const Error broken{Reason::kUnavailable, "the connection broke"};
      if (request_lost) return later(tl::unexpected(broken));
      hub_.server.open_session(
          request, [later, answer_lost, broken](const Result<v1::OpenSessionResponse>& answer) {
            later(answer_lost ? Result<v1::OpenSessionResponse>(tl::unexpected(broken)) : answer);
          });
    });
  }
}

std::shared_ptr<Stream> Worker::make_stream(worker::ConnectionId connection) {
  auto stream = std::make_shared<Stream>(hub_.schedule, hub_.random, hub_.weather.latency_max);
  process_->connections[stream] = connection;
  hub_.streams.push_back(stream);
  stream->on_end(Side::kWorker, [this, number = process_->number, connection](const Error& why) {
    if (!lives(number)) return;
    input([connection, why](worker::Agent& agent, Time now) {
      agent.connection_failed(connection, why, now);
    });
  });
  return stream;
}

void Worker::cut(Cut how) {
  if (!process_) return;
  hub_.judge.trace([&] { return "w" + std::to_string(index_) + ": its connections break"; });
  for (const auto& [stream, connection] : process_->connections) {
    if (how == Cut::kFromServer)
      stream->lose(Side::kWorker);
    else if (how == Cut::kLate)
      break_late(*stream);
    else
      cut_both(*stream);
  }
}

void Worker::cut_both(Stream& stream) {
  const int64_t server_hears_after = hub_.random.between(0, 3000);
  const int64_t worker_hears_after = hub_.random.between(0, 1000);
  stream.cut(server_hears_after, worker_hears_after);
}

void Worker::break_late(Stream& stream) {
  stream.hold(Side::kServer, hub_.random.between(100, 3000));
  stream.break_late(hub_.random.between(50, 500));
}

void Worker::reattach_received(const std::shared_ptr<Stream>& stream,
                               const v1::ReattachResponse& message) {
  if (!process_ || !process_->connections.contains(stream)) return;
  input([connection = process_->connections[stream], message](worker::Agent& agent, Time now) {
    agent.reattach_received(connection, message, now);
  });
}

void Worker::link_received(const std::shared_ptr<Stream>& stream, const v1::LinkResponse& message) {
  if (!process_ || !process_->connections.contains(stream)) return;
  input([connection = process_->connections[stream], message](worker::Agent& agent, Time now) {
    agent.link_received(connection, message, now);
  });
}

bool Worker::close_some_pool() {
  if (!process_ || process_->scheduling.is_stopped() || !process_->agent.is_attached() ||
      process_->agent.client_count() > 0 || !process_->joins.empty() || !hub_.server.is_running())
    return false;
  const std::vector<PoolId> pools = process_->ledger.pools();
  if (pools.empty()) return false;
  const PoolId pool = hub_.random.pick(pools);
  const Pool* known = hub_.server.directory().find<Pool>(pool);
  const Session* owner = known ? hub_.server.directory().find<Session>(known->owner) : nullptr;
  if (!owner) return false;
  // Refused while another worker's engines may map it.
  if (known->exports.empty()) hub_.witness.pool_will_close(pool);
  hub_.server.submit(ClosePool{{owner->id, owner->incarnation}, pool},
                     [](const Result<Outcome>&) {});
  return true;
}

void Worker::test_life(const std::string& life_name) {
  hub_.schedule.after(hub_.random.between(0, 20), [this, number = process_->number, life_name] {
    if (!lives(number)) return;
    input([this, life_name](worker::Agent& agent, Time now) {
      const bool is_free =
          hub_.locks.is_free(life_name) || (hub_.plant == Plant::kHeldLockTakenForFree &&
                                            process_->passed_locks.contains(life_name));
      agent.life_tested(life_name,
                        is_free ? worker::Agent::Life::kFree : worker::Agent::Life::kHeld, now);
    });
  });
}

// Notes that no world without lost power should give.
void Worker::judge_note(const worker::Note& note) {
  hub_.judge.trace([&] {
    std::string text = "w" + std::to_string(index_) + ": " + note.event;
    for (const auto& [name, value] : note.fields) text += " " + name + "=" + value;
    return text;
  });
  if (hub_.witness.has_power_been_cut()) return;
  // Which engine a private pool belongs to is decided on both sides, by who joined first; an answer
  // that was lost in between makes two first ones. And of a pool that was refused for want of room
  // the repeated call may be answered after the refusal: the agent asks again, and until then does
  // not know the pool. Then it refuses what the server grants, for this reason and no other.
  const bool may_not_know = hub_.weather.private_pool || hub_.weather.tight_host;
  if (note.event == "grant_refused" && may_not_know &&
      note.fields.back().second == name_of(pool::AllocateCode::kUnknownPool))
    return;
  const bool is_bad = note.event == "grant_refused" || note.event == "location_mismatch" ||
                      note.event == "verdict_refused" || note.event == "lease_refused";
  if (!is_bad) return;
  std::string text = "worker w" + std::to_string(index_) + " notes " + note.event;
  for (const auto& [name, value] : note.fields) text += " " + name + "=" + value;
  hub_.judge.fail(text);
}

// ---- Engines
// ------------------------------------------------------------------------------------------------------

void Worker::call(Call make, Answered answered) {
  if (!process_) {
    hub_.schedule.after(0, [answered = std::move(answered)] {
      answered(refuse(Reason::kUnavailable, "the worker is down"));
    });
    return;
  }
  const worker::CallId id(++process_->calls_made);
  process_->calls[id] = std::move(answered);
  hub_.schedule.after(hub_.random.between(0, 2),
                      [this, number = process_->number, id, make = std::move(make)] {
                        if (!lives(number)) return;
                        input([make, id](worker::Agent& agent, Time now) { make(agent, id, now); });
                      });
}

worker::JoinId Worker::join(Engine& engine, const v1::JoinHello& hello) {
  if (!process_) return {};
  const worker::JoinId id(++process_->joins_made);
  const std::string life =
      "w" + std::to_string(index_) + "-" + std::to_string(++life_names_) + ".life";
  hub_.locks.take(life);
  process_->joins[id] = {&engine, engine.run(), life};
  worker::Agent::Join join{id, hello, life, worker::to_bytes(hub_.random.id128()),
                           hub_.random.bytes(16)};
  input([join](worker::Agent& agent, Time now) { agent.client_joined(join, now); });
  return id;
}

void Worker::join_stream_ended(worker::JoinId join) {
  if (!process_) return;
  auto found = process_->joins.extract(join);
  if (found.empty()) return;
  if (!found.mapped().is_welcome) hub_.locks.let_go(found.mapped().life_name);
  input([join](worker::Agent& agent, Time now) { agent.client_stream_ended(join, now); });
}

void Worker::poison(worker::JoinId join, OperationNumber operation) {
  if (!process_ || !process_->joins.contains(join)) return;
  input([join, operation](worker::Agent& agent, Time now) {
    agent.client_poisoned(join, operation, now);
  });
}

void Worker::suspect(SessionId client) {
  if (!process_) return;
  input([client](worker::Agent& agent, Time now) { agent.client_suspected(client, now); });
}

void Worker::welcome(worker::Welcome& action) {
  const auto it = process_->joins.find(action.join);
  if (it == process_->joins.end()) return;  // its stream ended meanwhile
  Process::PendingJoin& join = it->second;
  join.is_welcome = true;
  std::vector<std::shared_ptr<Pages>> memory;
  for (const size_t index : action.pools) memory.push_back(process_->memory[index]);
  // The descriptor of the life lock is passed on, then closed here.
  const bool taken = join.engine->welcomed(join.engine_run, process_->key, action.join,
                                           action.message, memory, join.life_name);
  if (!taken) hub_.locks.let_go(join.life_name);
}

void Worker::end_join(const worker::EndJoin& action) {
  auto found = process_->joins.extract(action.join);
  if (found.empty()) return;
  const Process::PendingJoin join = found.mapped();
  if (!join.is_welcome) hub_.locks.let_go(join.life_name);
  hub_.schedule.after(hub_.random.between(0, 2),
                      [join, key = process_->key, id = action.join, error = action.error] {
                        join.engine->join_ended(join.engine_run, key, id, error);
                      });
}

// Plant::kReuseBeforeFreed: pages go although nobody reclaimed them.
void Worker::plant_reuse() {
  if (hub_.plant != Plant::kReuseBeforeFreed || !hub_.random.chance(50)) return;
  for (const ReplicaId id : process_->ledger.reattach_order()) {
    const pool::LedgerEntry* entry = process_->ledger.find(id);
    if (entry->state != pool::LedgerState::kSealed || entry->has_span_out()) continue;
    process_->ledger.reclaim(std::vector{id});
    process_->ledger.take_acknowledgements();
    return;
  }
}

}  // namespace berth::sim
