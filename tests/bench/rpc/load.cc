#include "tests/bench/rpc/load.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "tests/bench/rpc/process_facts.h"

namespace berth::bench {
namespace {

// Past it the server is so far behind that latencies only say how long the run was.
constexpr size_t kWaitingMax = 1'000'000;
constexpr auto kRest = std::chrono::milliseconds(1);

void sleep_until_nanos(uint64_t nanos) {
  std::this_thread::sleep_until(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(nanos)));
}

uint64_t in_nanos(double seconds) { return static_cast<uint64_t>(seconds * 1e9); }

double per(double value, double by) { return by > 0 ? value / by : 0; }

}  // namespace

double Measure::items_per_second() const { return per(static_cast<double>(items), seconds); }
double Measure::cycles_per_second() const { return per(static_cast<double>(cycles), seconds); }
double Measure::server_cpu_per_item() const {
  return per(server_cpu_seconds, static_cast<double>(items));
}

Result<Measure> Load::run(const LoadPlan& plan) {
  const uint64_t start_nanos = now_nanos();
  const uint64_t from_nanos = start_nanos + in_nanos(plan.warm_up_seconds);
  const uint64_t to_nanos = from_nanos + in_nanos(plan.seconds);
  const bool is_open = plan.cycles_per_second > 0;
  schedule_.reset();
  if (is_open) schedule_.emplace(plan.cycles_per_second, plan.seed);
  schedule_start_nanos_ = start_nanos;
  due_nanos_ = is_open ? next_due() : UINT64_MAX;
  tolerates_failures_ = plan.tolerates_failures;
  {
    const std::lock_guard lock(loop_.mutex());
    window_start_nanos_ = is_open ? from_nanos : 0;
    window_end_nanos_ = is_open ? to_nanos : UINT64_MAX;
    begin(is_open ? Mode::kOpen : Mode::kClosed);
  }
  pace_until(from_nanos);
  const double server_cpu = cpu_seconds(plan.server);
  const double client_cpu = cpu_seconds(0);
  uint64_t measured_from = 0;
  {
    const std::lock_guard lock(loop_.mutex());
    measure_ = {};
    measured_from = now_nanos();
  }
  pace_until(to_nanos);
  Measure measure;
  {
    const std::lock_guard lock(loop_.mutex());
    measure = measure_;
    measure.seconds = static_cast<double>(now_nanos() - measured_from) / 1e9;
  }
  // A server that was restarted has another clock.
  measure.server_cpu_seconds = std::max(cpu_seconds(plan.server) - server_cpu, 0.0);
  measure.client_cpu_seconds = cpu_seconds(0) - client_cpu;
  if (const Result<> ended = end(); !ended) return tl::unexpected(ended.error());
  if (is_open) {  // what was still under way belongs to it
    const std::lock_guard lock(loop_.mutex());
    measure.latency = measure_.latency;
  }
  return measure;
}

Result<> Load::run_cycles(uint64_t cycles) {
  {
    const std::lock_guard lock(loop_.mutex());
    cycles_left_ = cycles;
    begin(Mode::kCounted);
  }
  return end();
}

void Load::begin(Mode mode) {
  mode_ = mode;
  failure_.reset();
  measure_ = {};
  idle_.clear();
  waiting_.clear();
  for (const auto& flow : flows_) {
    flow->owner = this;
    if (mode == Mode::kOpen)
      idle_.push_back(flow.get());
    else
      go_on(*flow);
  }
}

// Starts what an open loop means to start, and what had failed.
void Load::pace_until(uint64_t end_nanos) {
  if (!schedule_ && !tolerates_failures_) return sleep_until_nanos(end_nanos);
  const auto rest = static_cast<uint64_t>(std::chrono::nanoseconds(kRest).count());
  for (uint64_t now = now_nanos(); now < end_nanos; now = now_nanos()) {
    uint64_t until = std::min(due_nanos_, end_nanos);
    if (tolerates_failures_) until = std::min(until, now + rest);
    sleep_until_nanos(until);
    const std::lock_guard lock(loop_.mutex());
    // Without a Link a flow fails at once, and rests again.
    for (Flow* flow : std::exchange(resting_, {})) go_on(*flow);
    for (now = now_nanos(); due_nanos_ <= now && due_nanos_ < end_nanos; due_nanos_ = next_due()) {
      if (waiting_.empty() && !idle_.empty()) {
        Flow* flow = idle_.front();
        idle_.pop_front();
        start(*flow, due_nanos_);
      } else if (waiting_.size() < kWaitingMax) {
        waiting_.push_back(due_nanos_);
      } else if (!failure_) {
        failure_ = Error{Reason::kLimitReached, "the rate is far beyond what is served"};
      }
    }
    if (failure_) return;
  }
}

Result<> Load::end() {
  std::unique_lock lock(loop_.mutex());
  if (mode_ == Mode::kClosed) mode_ = Mode::kEnding;
  if (mode_ == Mode::kOpen && failure_) waiting_.clear();
  resting_.clear();
  idle_changed_.wait(lock, [&] { return running_ == 0; });
  if (failure_) return tl::unexpected(*failure_);
  return {};
}

// ---- On the loop, under its mutex -------------------------------------------------------------

void Load::start(Flow& flow, uint64_t intended_nanos) {
  ++running_;
  flow.intended_nanos = intended_nanos;
  flow.start();
}

void Load::go_on(Flow& flow) {
  if (mode_ == Mode::kClosed) return start(flow, now_nanos());
  if (mode_ == Mode::kCounted && cycles_left_ > 0) {
    --cycles_left_;
    return start(flow, now_nanos());
  }
  if (mode_ != Mode::kOpen) return;
  if (waiting_.empty()) {
    idle_.push_back(&flow);
    return;
  }
  const uint64_t intended = waiting_.front();
  waiting_.pop_front();
  start(flow, intended);
}

void Load::on_cycle(Flow& flow, uint64_t items) {
  const uint64_t now = now_nanos();
  ++measure_.cycles;
  measure_.items += items;
  if (flow.intended_nanos >= window_start_nanos_ && flow.intended_nanos < window_end_nanos_)
    measure_.latency.record(now - flow.intended_nanos);
  --running_;
  if (!failure_) go_on(flow);
  if (running_ == 0) idle_changed_.notify_all();
}

void Load::on_failure(Flow& flow, const Error& why) {
  ++measure_.failures;
  --running_;
  if (tolerates_failures_) {
    if (mode_ != Mode::kEnding) resting_.push_back(&flow);
  } else if (!failure_) {
    failure_ = why;
  }
  if (running_ == 0) idle_changed_.notify_all();
}

}  // namespace berth::bench
