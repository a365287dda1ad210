#include "tests/bench/rpc/plan.h"

#include <cstdio>

namespace berth::bench {
namespace {

constexpr double kFilledPerSecond = 100'000;
constexpr double kCorePerSecond = 250'000;
// Of a round: the floors without RPC, and what a run stored is evicted.
constexpr double kFloorSeconds = 0.3;

}  // namespace

double seconds_of(const Plan& plan) {
  const auto fleets_of_population =
      static_cast<double>(plan.transports.size() * plan.durabilities.size());
  const double run = plan.warm_up_seconds + plan.seconds;
  // An open loop that is a share of saturation first looks for that.
  const double closed_runs = plan.load > 0 ? 3 : 0;
  const double rounds = static_cast<double>(plan.runs) *
                        (static_cast<double>(2 + plan.during.size()) * run + kFloorSeconds);
  const double cells = static_cast<double>(plan.cells.size()) * (rounds + closed_runs * run);
  double seconds = 0;
  for (const uint64_t population : plan.populations) {
    const auto objects = static_cast<double>(population);
    seconds +=
        objects / kCorePerSecond + fleets_of_population * (cells + 1 + objects / kFilledPerSecond);
  }
  return seconds;
}

std::string summary_of(const Plan& plan) {
  const size_t fleets = plan.transports.size() * plan.durabilities.size() * plan.populations.size();
  const double minutes = seconds_of(plan) / 60;
  char text[256];
  std::snprintf(
      text, sizeof text,
      "%zu fleet%s (%zu transports, %zu durabilities, %zu populations) of %zu cells, %llu "
      "rounds each: about %.0f %s",
      fleets, fleets == 1 ? "" : "s", plan.transports.size(), plan.durabilities.size(),
      plan.populations.size(), plan.cells.size(), static_cast<unsigned long long>(plan.runs),
      minutes < 100 ? minutes : minutes / 60, minutes < 100 ? "minutes" : "hours");
  return text;
}

std::string name_of(Workload workload) {
  switch (workload) {
    case Workload::kProbe:
      return "probe";
    case Workload::kAcquire:
      return "acquire+release";
    case Workload::kStore:
      return "reserve+commit";
    case Workload::kTrace:
      return "trace";
  }
  return "";
}

std::string name_of(Api api) { return api == Api::kUnary ? "unary" : "link"; }

std::string name_of(Transport transport) { return transport == Transport::kTcp ? "tcp" : "unix"; }

}  // namespace berth::bench
