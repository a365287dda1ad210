// What the engine maps of other workers' pools: read in place, unmapped when the worker says so and
// no handle reads from it any more.
#include "tests/sim/engine.h"

namespace berth::sim {

Engine::ImportedMapping::ImportedMapping(Hub& hub_in, PoolId pool_in, Worker::ImportedPool mapped)
    : hub(hub_in), pool(pool_in), memory(std::move(mapped)) {
  hub.witness.mapped(pool);
}

Engine::ImportedMapping::~ImportedMapping() {
  stop_watching();
  hub.locks.let_go(memory.life_name);
}

void Engine::ImportedMapping::stop_watching() {
  if (std::exchange(is_watched, false)) hub.witness.unmapped(pool);
}

void Engine::pool_added(uint64_t run, ProcessKey key, worker::JoinId join, worker::ImportId import,
                        PoolId pool) {
  scheduling_.run([this, run, key, join, import, pool] {
    if (run != run_ || !running_ || join != join_ || key != join_through_ || !joined_) return;
    if (worker_.process_key() != key || hub_.random.chance(20)) return;  // it cannot be mapped
    std::optional<Worker::ImportedPool> fetched = worker_.fetch_import(join, import);
    if (!fetched) return;  // it is gone already
    hub_.judge.trace([&] { return engine_id_ + ": maps pool " + to_text(pool) + " of another"; });
    imports_[pool] = std::make_shared<ImportedMapping>(hub_, pool, std::move(*fetched));
    if (is_fenced_) imports_[pool]->stop_watching();
  });
}

std::vector<std::string> Engine::imported_lives() const {
  std::vector<std::string> names;
  for (const auto& [pool, imported] : imports_) names.push_back(imported->memory.life_name);
  for (const Handle& handle : handles_)
    for (const Span& span : handle.spans)
      if (span.imported) names.push_back(span.imported->memory.life_name);
  return names;
}

// The worker told it of a place that it does not map (yet, or any more).
void Engine::give_back(LeaseId lease) {
  v1::WorkerReleaseRequest request;
  *request.mutable_caller() = caller();
  request.add_handles(lease.value());
  worker_.call([request](worker::Agent& agent, worker::CallId call,
                         Time now) { agent.release(call, request, now); },
               [](const Result<worker::Reply>&) {});
}

}  // namespace berth::sim
