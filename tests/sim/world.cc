#include "tests/sim/world.h"

#include <algorithm>

namespace berth::sim {
namespace {

BootId boot_id(Random& random) { return random.id128(); }

}  // namespace

World::World(const RunOptions& options)
    : options_(options),
      judge_(options.trace),
      random_(options.seed),
      weather_(random_),
      schedule_(judge_),
      witness_(judge_, random_, weather_, locks_),
      server_(schedule_, random_, weather_, judge_, witness_, options.plant),
      hub_{schedule_, random_, weather_, judge_, locks_, witness_, server_, options.plant} {
  for (uint64_t i = 0; i < weather_.node_count; ++i)
    hosts_.push_back({"n" + std::to_string(i), boot_id(random_), {}});
  for (size_t i = 0; i < weather_.worker_count; ++i) {
    Host& host = hosts_[i % hosts_.size()];
    host.workers.push_back(i);
    workers_.push_back(std::make_unique<Worker>(hub_, i, host.node));
    hub_.workers.push_back(workers_.back().get());
    workers_.back()->on_gave_up = [this, i] { crash_worker(i); };
    for (uint64_t k = 0; k < weather_.engines_per_worker; ++k)
      engines_.push_back(std::make_unique<Engine>(
          hub_, *workers_[i], "e" + std::to_string(i) + "-" + std::to_string(k)));
  }
  server_.link_answer = [this](const std::shared_ptr<Stream>& stream,
                               const v1::LinkResponse& message) {
    for (const auto& worker : workers_) worker->link_received(stream, message);
  };
  witness_.on_operator_fence = [this](SessionId id) {
    for (const auto& engine : engines_) engine->operator_fenced(id);
  };
  server_.reattach_answer = [this](const std::shared_ptr<Stream>& stream,
                                   const v1::ReattachResponse& message) {
    for (const auto& worker : workers_) worker->reattach_received(stream, message);
  };
}

World::~World() {
  for (const std::weak_ptr<Stream>& made : hub_.streams)
    if (const std::shared_ptr<Stream> stream = made.lock()) stream->forget();
}

RunResult World::run() {
  server_.start();
  for (size_t i = 0; i < workers_.size(); ++i) start_worker(i);
  let_some_time_pass(500);
  for (const auto& engine : engines_) {
    engine->start();
    engine->join();
  }
  for (uint64_t step = 0; step < options_.steps && !judge_.failed(); ++step) do_something();
  if (!judge_.failed()) heal();
  RunResult result;
  result.failure = judge_.failure();
  result.digest = judge_.digest_value();
  result.commits = server_.disk().commits();
  result.fenced_readers_saw_change = judge_.fenced_readers_saw_change();
  result.simulated_millis = static_cast<uint64_t>(schedule_.now());
  return result;
}

void World::do_something() {
  let_some_time_pass(random_.between(0, weather_.step_max));
  if (judge_.failed()) return;
  const Deed deed = weather_.draw(random_);
  judge_.digest(static_cast<uint64_t>(deed), static_cast<uint64_t>(schedule_.now()));
  do_deed(deed);
}

void World::do_deed(Deed deed) {
  const size_t some_worker = random_.below(workers_.size());
  switch (deed) {
    case Deed::kWorkerCrash:
      return crash_worker(some_worker);
    case Deed::kWorkerStall: {
      workers_[some_worker]->stand_still();
      schedule_.after(random_.between(100, 6000),
                      [this, some_worker] { workers_[some_worker]->go_on(); });
      return;
    }
    case Deed::kHostReboot:
      return reboot_host(hosts_[some_worker % hosts_.size()]);
    case Deed::kServerCrash:
    case Deed::kPowerCut:
    case Deed::kStoreMoved:
      return stop_server(deed);
    case Deed::kServerStall:
      if (server_.is_standing_still() || !server_.is_running()) return;
      judge_.trace([] { return "server: stands still"; });
      server_.stand_still();
      schedule_.after(random_.between(500, 20'000), [this] {
        judge_.trace([] { return "server: goes on"; });
        server_.go_on();
      });
      return;
    case Deed::kCommitFails:
      return server_.disk().fail_next(random_.chance(500) ? MemoryDisk::Fault::kLost
                                                          : MemoryDisk::Fault::kLanded);
    case Deed::kFlushFails:
      return server_.disk().fail_next_flush();
    case Deed::kDiskBreaks:
      return break_disk();
    case Deed::kLinkBreaks:
      return workers_[some_worker]->cut(Worker::Cut::kBothWays);
    case Deed::kOneWayBreak:
      return workers_[some_worker]->cut(Worker::Cut::kFromServer);
    case Deed::kLateBreak:
      return workers_[some_worker]->cut(Worker::Cut::kLate);
    case Deed::kTimeJump:
      return let_some_time_pass(random_.between(500, 6000));
    case Deed::kNeighboursBreak:
      return workers_[some_worker]->break_some_connection();
    case Deed::kClosePool:
      return close_pool(some_worker);
    default:
      if (!do_operators_deed(deed)) do_engine_deed(deed, *random_.pick(engines_));
  }
}

void World::do_engine_deed(Deed deed, Engine& engine) {
  switch (deed) {
    case Deed::kJoin:
      return engine.join();
    case Deed::kStore:
      return engine.store();
    case Deed::kWrite:
      return engine.write();
    case Deed::kFinish:
      return engine.finish();
    case Deed::kGiveUp:
      return engine.give_up();
    case Deed::kLoad:
      return engine.load();
    case Deed::kRead:
      return engine.read();
    case Deed::kRelease:
      return engine.release();
    case Deed::kRenew:
      return engine.renew();
    case Deed::kProbe:
      return engine.probe();
    case Deed::kRepeat:
      return engine.repeat();
    case Deed::kReuseNumber:
      return engine.reuse_number();
    case Deed::kLeave:
      return engine.leave();
    case Deed::kEngineStream:
      return engine.break_stream();
    case Deed::kEngineCrash:
      return engine.crash();
    case Deed::kEngineFork:
      return engine.fork();
    case Deed::kForkEnds:
      return engine.end_fork();
    case Deed::kEngineStall: {
      engine.stand_still();
      schedule_.after(random_.between(500, 15'000), [&engine] { engine.go_on(); });
      return;
    }
    default:
      return;
  }
}

// ---- Faults
// ------------------------------------------------------------------------------------------------------

void World::start_worker(size_t index) {
  workers_[index]->start(hosts_[index % hosts_.size()].boot);
}

void World::crash_worker(size_t index) {
  workers_[index]->kill();
  schedule_.after(random_.between(20, 4000), [this, index] { start_worker(index); });
}

// Its worker takes a pool that nobody maps out of use, for good: soon it is gone itself.
void World::close_pool(size_t index) {
  Worker& worker = *workers_[index];
  if (!worker.close_some_pool()) return;
  schedule_.after(random_.between(0, 4000), [this, index, key = worker.process_key()] {
    if (workers_[index]->process_key() == key) crash_worker(index);
  });
}

void World::reboot_host(Host& host) {
  judge_.trace([&] { return host.node + ": reboots"; });
  for (const size_t index : host.workers) {
    for (const auto& engine : engines_) {
      if (&engine->worker() != workers_[index].get()) continue;
      engine->crash();
      engine->end_all_forks();
    }
    workers_[index]->kill();
    schedule_.after(random_.between(500, 6000), [this, index] { start_worker(index); });
  }
  host.boot = boot_id(random_);
}

void World::stop_server(Deed how) {
  if (!server_.is_running()) return;
  if (how == Deed::kStoreMoved) server_.disk().set_moved();
  if (how == Deed::kPowerCut)
    server_.cut_power();
  else
    server_.kill();
  start_server_later(random_.between(50, 4000));
}

void World::start_server_later(int64_t after) {
  if (std::exchange(server_start_due_, true)) return;
  schedule_.after(after, [this] {
    server_start_due_ = false;
    server_.start();
    if (!server_.is_running()) start_server_later(500);
  });
}

void World::break_disk() {
  server_.disk().fail(random_.chance(500) ? MemoryDisk::Fault::kLost : MemoryDisk::Fault::kLanded);
  schedule_.after(random_.between(500, 5000), [this] { server_.disk().mend(); });
}

// ---- Runs
// --------------------------------------------------------------------------------------------------------

RunResult run(const RunOptions& options) { return World(options).run(); }

RunResult run_twice(const RunOptions& options) {
  RunResult first = run(options);
  RunOptions quiet = options;
  quiet.trace = false;
  const RunResult second = run(quiet);
  if (first.digest != second.digest || first.failure != second.failure)
    first.failure =
        "the same seed gave two results: \"" + first.failure + "\" and \"" + second.failure + "\"";
  return first;
}

}  // namespace berth::sim
