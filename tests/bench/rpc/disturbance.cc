#include "tests/bench/rpc/disturbance.h"

#include <chrono>
#include <thread>

#include "tests/bench/rpc/ask_admin.h"
#include "tests/bench/rpc/load.h"

namespace berth::bench {
namespace {

using Facts = std::map<std::string, double>;

constexpr uint64_t kBatch = 128;
constexpr uint64_t kFillCallers = 4;
// So that there is always something to sync, and no core is taken from those who are measured.
constexpr double kStallCyclesPerSecond = 10;
constexpr double kJobWithin = 120;  // seconds

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

double seconds_since(uint64_t start_nanos) {
  return static_cast<double>(now_nanos() - start_nanos) / 1e9;
}

// Store flows of one member, into its own namespace.
Flows store_flows(Fleet& fleet, Member& member, uint64_t callers, uint64_t seed) {
  FlowSettings settings;
  settings.workload = Workload::kStore;
  settings.batch = kBatch;
  settings.stores = Objects::kPopulation;
  settings.tolerates_skips = true;
  settings.seed = seed;
  Flows flows;
  for (uint64_t i = 0; i < callers; ++i)
    flows.push_back(make_flow({fleet.loop(), {&member}}, settings, i));
  return flows;
}

Result<> fill(Fleet& fleet, Member& member, uint64_t objects) {
  Flows flows = store_flows(fleet, member, kFillCallers, 1);
  return Load(fleet.loop(), flows).run_cycles((objects + kBatch - 1) / kBatch);
}

class Eviction final : public Disturbance {
 public:
  Eviction(Fleet& fleet, const DisturbanceSettings& settings)
      : fleet_(fleet), settings_(settings) {}

  Result<> prepare() override {
    if (member_) return {};
    const Result<Member*> member = fleet_.add_extra(settings_.objects);
    if (!member) return tl::unexpected(member.error());
    member_ = *member;
    return fill(fleet_, *member_, settings_.objects);
  }
  Result<Facts> happen(const MeasuredWindow& window) override {
    Flows flows = store_flows(fleet_, *member_, kFillCallers, settings_.seed);
    LoadPlan plan;
    plan.warm_up_seconds = window.from_seconds;
    plan.seconds = window.to_seconds - window.from_seconds;
    plan.cycles_per_second = settings_.evicted_per_second / kBatch;
    plan.seed = settings_.seed;
    const auto before = evicted();
    if (!before) return tl::unexpected(before.error());
    const Result<Measure> stored = Load(fleet_.loop(), flows).run(plan);
    if (!stored) return tl::unexpected(stored.error());
    const auto after = evicted();
    if (!after) return tl::unexpected(after.error());
    return Facts{{"stored_per_second", stored->items_per_second()},
                 {"evicted_per_second", (*after - *before) / window.to_seconds}};
  }

 private:
  Result<double> evicted() {
    const auto policy =
        ask_admin(fleet_.admin(), &v1::Admin::Stub::GetPolicy, v1::GetPolicyRequest());
    if (!policy) return tl::unexpected(policy.error());
    return static_cast<double>(policy->evicted_replicas());
  }

  Fleet& fleet_;
  const DisturbanceSettings settings_;
  Member* member_ = nullptr;
};

class Fence final : public Disturbance {
 public:
  Fence(Fleet& fleet, const DisturbanceSettings& settings) : fleet_(fleet), settings_(settings) {}

  // A new victim each time: who was fenced never comes back.
  Result<> prepare() override {
    if (victim_) fleet_.remove_extra(*victim_);
    const Result<Member*> victim = fleet_.add_extra(2 * settings_.objects);
    if (!victim) return tl::unexpected(victim.error());
    victim_ = *victim;
    return fill(fleet_, *victim_, settings_.objects);
  }
  Result<Facts> happen(const MeasuredWindow& window) override {
    sleep_for(window.from_seconds);
    v1::FenceRequest fence;
    fence.set_session(victim_->session());
    fence.set_reason("berth-bench");
    const uint64_t start = now_nanos();
    if (const auto done = ask_admin(fleet_.admin(), &v1::Admin::Stub::Fence, fence); !done)
      return tl::unexpected(done.error());
    const double answered = seconds_since(start);
    for (;;) {
      const auto jobs =
          ask_admin(fleet_.admin(), &v1::Admin::Stub::ListJobs, v1::ListJobsRequest());
      if (!jobs) return tl::unexpected(jobs.error());
      if (jobs->jobs().empty()) break;
      if (seconds_since(start) > kJobWithin)
        return refuse(Reason::kDeadlineExceeded, "the fence's job does not end");
      sleep_for(0.002);
    }
    return Facts{{"answered_ms", answered * 1e3}, {"job_ms", seconds_since(start) * 1e3}};
  }

 private:
  Fleet& fleet_;
  const DisturbanceSettings settings_;
  Member* victim_ = nullptr;
};

class Stall final : public Disturbance {
 public:
  Stall(Fleet& fleet, const DisturbanceSettings& settings) : fleet_(fleet), settings_(settings) {}

  Result<> prepare() override {
    if (member_) return {};
    const Result<Member*> member = fleet_.add_extra(settings_.objects);
    if (!member) return tl::unexpected(member.error());
    member_ = *member;
    return {};
  }
  // The member sees to it that there is something to sync all the time.
  Result<Facts> happen(const MeasuredWindow& window) override {
    Flows flows = store_flows(fleet_, *member_, kFillCallers, settings_.seed);
    LoadPlan plan;
    plan.warm_up_seconds = window.from_seconds;
    plan.seconds = window.to_seconds - window.from_seconds;
    plan.cycles_per_second = kStallCyclesPerSecond;
    plan.seed = settings_.seed;
    if (const Result<> stalled = fleet_.stall_disk(); !stalled)
      return tl::unexpected(stalled.error());
    const Result<Measure> stored = Load(fleet_.loop(), flows).run(plan);
    fleet_.end_disk_stall();
    if (!stored) return tl::unexpected(stored.error());
    return Facts{{"stored_per_second", stored->items_per_second()}};
  }

 private:
  Fleet& fleet_;
  const DisturbanceSettings settings_;
  Member* member_ = nullptr;
};

class Restart final : public Disturbance {
 public:
  explicit Restart(Fleet& fleet) : fleet_(fleet) {}

  Result<> prepare() override { return {}; }
  Result<Facts> happen(const MeasuredWindow& window) override {
    sleep_for(window.from_seconds + (window.to_seconds - window.from_seconds) / 5);
    const auto took = fleet_.restart_berthd();
    if (!took) return tl::unexpected(took.error());
    return Facts{{"serving_ms", took->serving_seconds * 1e3},
                 {"verified_ms", took->verified_seconds * 1e3}};
  }
  bool breaks_calls() const override { return true; }

 private:
  Fleet& fleet_;
};

}  // namespace

std::string name_of(During during) {
  switch (during) {
    case During::kNothing:
      return "";
    case During::kEviction:
      return "eviction";
    case During::kFence:
      return "fence";
    case During::kStall:
      return "stall";
    case During::kRestart:
      return "restart";
  }
  return "";
}

std::unique_ptr<Disturbance> make_disturbance(Fleet& fleet, const DisturbanceSettings& settings) {
  switch (settings.during) {
    case During::kNothing:
      return nullptr;
    case During::kEviction:
      return std::make_unique<Eviction>(fleet, settings);
    case During::kFence:
      return std::make_unique<Fence>(fleet, settings);
    case During::kStall:
      return std::make_unique<Stall>(fleet, settings);
    case During::kRestart:
      return std::make_unique<Restart>(fleet);
  }
  return nullptr;
}

}  // namespace berth::bench
