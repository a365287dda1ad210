#include "worker/replay/replay.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"
#include "worker/replay/engine_process.h"
#include "worker/replay/local_fleet.h"
#include "worker/replay/progress.h"
#include "worker/replay/share.h"

namespace berth::replay {
namespace {

constexpr Duration kLookEvery = milliseconds(200);

// The engines of one replay, threads or processes.
class EngineGroup {
 public:
  virtual ~EngineGroup() = default;
  virtual bool has_ended() = 0;
  virtual void ask_to_stop() = 0;
  // Waits. One element an engine.
  virtual std::vector<Result<Counts>> finish() = 0;
};

class EngineThreads final : public EngineGroup {
 public:
  EngineThreads(const ReplayOptions& options, const std::vector<Request>& requests,
                const std::vector<uint32_t>& engine_of, Progress& progress)
      : progress_(progress), results_(options.engines, refuse(Reason::kInternal, "not run")) {
    for (uint32_t engine = 0; engine < options.engines; ++engine)
      threads_.emplace_back([&, engine] {
        results_[engine] = replay_share(options, requests, engine_of, engine, progress_);
        // One engine that cannot even begin ends all: there is nothing to measure.
        if (!results_[engine]) progress_.stop();
        ++ended_;
      });
  }
  bool has_ended() override { return ended_ == threads_.size(); }
  void ask_to_stop() override { progress_.stop(); }
  std::vector<Result<Counts>> finish() override {
    for (std::thread& thread : threads_) thread.join();
    return std::move(results_);
  }

 private:
  Progress& progress_;
  std::vector<Result<Counts>> results_;
  std::atomic<size_t> ended_ = 0;
  std::vector<std::thread> threads_;
};

class EngineProcesses final : public EngineGroup {
 public:
  static Result<std::unique_ptr<EngineGroup>> start(const ReplayOptions& options,
                                                    Progress& progress) {
    auto group = std::make_unique<EngineProcesses>();
    for (uint32_t engine = 0; engine < options.engines; ++engine) {
      auto process = EngineProcess::start(options, engine, progress);
      if (!process) return tl::unexpected(process.error());
      group->processes_.push_back(std::move(*process));
    }
    return group;
  }
  bool has_ended() override {
    return std::all_of(processes_.begin(), processes_.end(),
                       [](const auto& process) { return process->has_ended(); });
  }
  void ask_to_stop() override {
    for (const auto& process : processes_) process->ask_to_stop();
  }
  std::vector<Result<Counts>> finish() override {
    std::vector<Result<Counts>> results;
    for (const auto& process : processes_) results.push_back(process->finish());
    return results;
  }

 private:
  std::vector<std::unique_ptr<EngineProcess>> processes_;
};

// Until all engines ended, a signal came, or a process of the fleet died, which is the answer.
std::optional<std::string> watch(EngineGroup& engines, const LocalFleet* fleet, Progress& progress,
                                 int stop_signals, const Clock& clock) {
  const int64_t begun = clock.monotonic_millis();
  std::optional<std::string> dead;
  while (!engines.has_ended()) {
    progress.wait(kLookEvery);
    progress.draw(static_cast<double>(clock.monotonic_millis() - begun) / 1000);
    if (fleet && !dead) dead = fleet->find_dead();
    if (dead || progress.is_stopped() || take_stop_signal(stop_signals) != 0) {
      progress.stop();
      engines.ask_to_stop();
      break;
    }
  }
  return dead;
}

Result<ReplayResult> add_up(const ReplayOptions& options, std::vector<Result<Counts>> results) {
  ReplayResult total;
  total.engines = options.engines;
  total.block_bytes = options.block_bytes;
  for (const Result<Counts>& result : results) {
    if (result) {
      total.counts.add(*result);
    } else if (options.processes) {
      ++total.engines_lost;
    } else {
      return tl::unexpected(result.error());
    }
  }
  return total;
}

}  // namespace

Result<ReplayResult> run_replay(ReplayOptions options, int stop_signals) {
  const Result<std::vector<Request>> requests = requests_of(options);
  if (!requests) return tl::unexpected(requests.error());
  std::optional<LocalFleet> fleet;
  if (options.local) {
    Result<LocalFleet> started = LocalFleet::start(options);
    if (!started) return tl::unexpected(started.error());
    fleet.emplace(std::move(*started));
    options.worker_sockets = fleet->worker_sockets();
    log::info("fleet_started", {{"directory", fleet->directory()}});
  }

  const SteadyClock clock;
  const std::vector<uint32_t> engine_of = route(*requests, options.engines, options.routing);
  Progress progress(requests->size());
  std::unique_ptr<EngineGroup> engines;
  if (options.processes) {
    auto started = EngineProcesses::start(options, progress);
    if (!started) return tl::unexpected(started.error());
    engines = std::move(*started);
  } else {
    engines = std::make_unique<EngineThreads>(options, *requests, engine_of, progress);
  }
  const int64_t begun = clock.monotonic_nanos();
  const std::optional<std::string> dead =
      watch(*engines, fleet ? &*fleet : nullptr, progress, stop_signals, clock);
  Result<ReplayResult> result = add_up(options, engines->finish());
  progress.clear();
  if (result) result->seconds = static_cast<double>(clock.monotonic_nanos() - begun) / 1e9;

  if (fleet && !dead && result) {
    const Result<FleetFigures> figures = ask_fleet(fleet->server_address());
    if (figures)
      result->fleet = *figures;
    else
      result = tl::unexpected(figures.error());
  }
  if (fleet && (dead || !result)) std::fputs(fleet->logs().c_str(), stderr);
  if (dead) return refuse(Reason::kUnavailable, *dead + " of the local fleet ended by itself");
  return result;
}

}  // namespace berth::replay
