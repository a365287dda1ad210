#include "tests/bench/rpc/options.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "common/version.h"

namespace berth::bench {
namespace {

constexpr uint64_t kPopulationMax = 100'000'000;
constexpr uint64_t kCallersMax = 1024;
constexpr uint64_t kBatchMax = 4096;  // of one request, by berthd's default limits
constexpr uint64_t kMembersMax = 64;
const std::vector<uint64_t> kNoBatch{0};

// A profile, and what was said instead of its lists.
struct RawOptions {
  std::string profile = "quick";
  bool is_quick = false;
  std::vector<std::string> workloads;
  std::vector<std::string> apis;
  std::vector<std::string> transports;
  std::vector<std::string> durabilities;
  std::vector<uint64_t> populations;
  std::vector<uint64_t> callers;
  std::vector<uint64_t> batches;
  std::vector<std::string> during;
  std::string generate;
};

template <class Value>
void add_list(CLI::App& app, const std::string& name, std::vector<Value>& values,
              const std::string& what) {
  app.add_option(name, values, what)->delimiter(',')->option_text("LIST");
}

void declare(CLI::App& app, Options& options, RawOptions& raw) {
  app.set_version_flag("--version", std::string(kVersion));
  Plan& plan = options.plan;
  app.add_option("--profile", raw.profile,
                 "quick (default, a minute), standard (20 minutes), full (hours)")
      ->check(CLI::IsMember({"quick", "standard", "full"}))
      ->option_text("WORD");
  app.add_flag("--quick", raw.is_quick, "The same as --profile quick");

  add_list(app, "--workload", raw.workloads,
           "probe, acquire (and release), store (reserve and commit), trace");
  add_list(app, "--api", raw.apis, "unary, link (one stream for each session)");
  add_list(app, "--callers", raw.callers, "Cycles under way at once");
  add_list(app, "--batch", raw.batches, "Items of one call");
  add_list(app, "--transport", raw.transports, "tcp (loopback), unix");
  add_list(app, "--durability", raw.durabilities, "sync, interval, none");
  add_list(app, "--population", raw.populations, "Objects that are there from the beginning");

  app.add_option("--runs", plan.runs, "Rounds of floor and figure (default 5; quick 7)")
      ->option_text("N");
  app.add_option("--seconds", plan.seconds, "Of one run")->option_text("SECONDS");
  app.add_option("--warm-up", plan.warm_up_seconds, "Before each run")->option_text("SECONDS");
  app.add_option("--sessions", plan.members,
                 "Worker sessions with a client each, and their connections (default 4)")
      ->option_text("N");
  app.add_option("--seed", plan.seed, "Of all chance (default 1)")->option_text("N");
  auto* rate =
      app.add_option("--rate", plan.rate, "Open loop at so many cycles a second")->option_text("N");
  app.add_option("--load", plan.load,
                 "Open loop at this share of what the closed loop carries, e.g. 0.7")
      ->option_text("SHARE")
      ->excludes(rate);
  add_list(
      app, "--during", raw.during,
      "Each round once more during: eviction, fence (of --event-objects), stall (of the disk), "
      "restart");
  app.add_option("--event-objects", plan.event_objects,
                 "Objects that are fenced; that fit into the pool that evicts (default 200000)")
      ->option_text("N");
  auto* trace =
      app.add_option("--trace", plan.trace, "Requests of trace: a JSONL file")->option_text("FILE");
  app.add_option("--generate", raw.generate,
                 "Requests of trace: made up, chat (default), rag or agents")
      ->option_text("KIND")
      ->excludes(trace);
  app.add_option("--requests", plan.requests, "So many of them (default 2000)")->option_text("N");
  app.add_option("--directory", plan.directory,
                 "Where the state lies while it runs (default: the temporary folder)")
      ->option_text("DIR");
  app.add_flag("--dry-run", options.is_dry_run,
               "Say what would be measured, and how long it takes");
  app.add_flag("--json", options.json, "Print the figures as one JSON object");
  app.add_option("--output", options.output, "Write them to this file, too")->option_text("FILE");
  app.add_option("--echo-server", options.echo_addresses)->group("");
}

template <class Value>
Result<> take_words(const std::string& option, const std::vector<std::string>& words,
                    const std::vector<std::pair<std::string, Value>>& known,
                    std::vector<Value>& values) {
  if (words.empty()) return {};
  values.clear();
  for (const std::string& word : words) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const auto& entry) { return entry.first == word; });
    if (found == known.end()) {
      std::string accepted;
      for (const auto& [name, value] : known) accepted += (accepted.empty() ? "" : ", ") + name;
      return refuse(Reason::kInvalidArgument, option + " " + word + ": accepted are " + accepted);
    }
    values.push_back(found->second);
  }
  return {};
}

Result<> check_range(const std::string& option, double value, double min, double max) {
  if (value >= min && value <= max) return {};
  std::ostringstream text;
  text << option << " " << value << ": accepted are " << min << " to " << max;
  return refuse(Reason::kInvalidArgument, text.str());
}

Result<> check(const Plan& plan) {
  std::vector<Result<>> checked{
      check_range("--runs", static_cast<double>(plan.runs), 1, 1000),
      check_range("--seconds", plan.seconds, 0.01, 3600),
      check_range("--warm-up", plan.warm_up_seconds, 0, 3600),
      check_range("--sessions", static_cast<double>(plan.members), 1,
                  static_cast<double>(kMembersMax)),
      check_range("--event-objects", static_cast<double>(plan.event_objects), 1000, 1e8),
      check_range("--requests", static_cast<double>(plan.requests), 1, 1e7),
      check_range("--rate", plan.rate, 0, 1e7),
      check_range("--load", plan.load, 0, 2)};
  uint64_t batch_max = 1;
  for (const Cell& cell : plan.cells) {
    batch_max = std::max(batch_max, cell.batch);
    checked.push_back(check_range("--callers", static_cast<double>(cell.callers), 1,
                                  static_cast<double>(kCallersMax)));
    if (cell.workload == Workload::kTrace) continue;
    checked.push_back(
        check_range("--batch", static_cast<double>(cell.batch), 1, static_cast<double>(kBatchMax)));
  }
  // Members hold equal shares but for a few batches of the filling.
  for (const uint64_t population : plan.populations)
    checked.push_back(check_range("--population", static_cast<double>(population),
                                  static_cast<double>((batch_max + 1000) * plan.members),
                                  static_cast<double>(kPopulationMax)));
  for (Result<>& result : checked)
    if (!result) return result;
  return {};
}

// Single operations are what streams are for: batches go by unary calls. The calls of a trace are
// as long as its requests.
void add_cells(Plan& plan, const std::vector<Workload>& workloads, const std::vector<Api>& apis,
               const std::vector<uint64_t>& callers, const std::vector<uint64_t>& batches) {
  for (const Workload workload : workloads)
    for (const Api api : apis)
      for (const uint64_t batch : workload == Workload::kTrace ? kNoBatch : batches)
        for (const uint64_t caller : callers)
          if (api == Api::kUnary || batch == 1 || workload == Workload::kTrace)
            plan.cells.push_back({workload, api, caller, batch});
}

Result<> understand(Options& options, const RawOptions& raw, const CLI::App& app) {
  Plan& plan = options.plan;
  std::vector<Workload> workloads{Workload::kProbe, Workload::kAcquire, Workload::kStore,
                                  Workload::kTrace};
  std::vector<Api> apis{Api::kUnary, Api::kLink};
  std::vector<uint64_t> callers{1, 8, 64};
  std::vector<uint64_t> batches{1, 32, 128, 512};
  const std::string profile = raw.is_quick ? "quick" : raw.profile;
  if (profile == "quick") {
    if (app.count("--runs") == 0) plan.runs = 7;
    if (app.count("--seconds") == 0) plan.seconds = 0.2;
    if (app.count("--warm-up") == 0) plan.warm_up_seconds = 0.05;
  } else if (profile == "standard") {
    plan.populations = {10'000, 1'000'000};
  } else {
    plan.transports = {Transport::kTcp, Transport::kUnix};
    plan.durabilities = {"interval", "sync", "none"};
    plan.populations = {10'000, 1'000'000, 10'000'000};
  }
  const std::vector<std::pair<std::string, Workload>> workload_words{
      {"probe", Workload::kProbe},
      {"acquire", Workload::kAcquire},
      {"store", Workload::kStore},
      {"trace", Workload::kTrace}};
  const std::vector<std::pair<std::string, During>> during_words{{"eviction", During::kEviction},
                                                                 {"fence", During::kFence},
                                                                 {"stall", During::kStall},
                                                                 {"restart", During::kRestart}};
  const std::vector<std::pair<std::string, Api>> api_words{{"unary", Api::kUnary},
                                                           {"link", Api::kLink}};
  const std::vector<std::pair<std::string, Transport>> transport_words{{"tcp", Transport::kTcp},
                                                                       {"unix", Transport::kUnix}};
  const std::vector<std::pair<std::string, std::string>> durability_words{
      {"sync", "sync"}, {"interval", "interval"}, {"none", "none"}};
  for (const Result<>& taken :
       {take_words("--workload", raw.workloads, workload_words, workloads),
        take_words("--api", raw.apis, api_words, apis),
        take_words("--transport", raw.transports, transport_words, plan.transports),
        take_words("--durability", raw.durabilities, durability_words, plan.durabilities),
        take_words("--during", raw.during, during_words, plan.during)})
    if (!taken) return taken;
  if (!raw.generate.empty()) {
    const auto kind = replay::parse_trace_kind(raw.generate);
    if (!kind) return tl::unexpected(kind.error());
    plan.generate = *kind;
  }
  if (!raw.populations.empty()) plan.populations = raw.populations;
  // The shapes that the design's promises are about.
  const bool is_shape_given = !raw.callers.empty() || !raw.batches.empty() || !raw.apis.empty();
  if (profile == "quick" && !is_shape_given) {
    add_cells(plan, workloads, {Api::kUnary}, {8}, {128});
    std::erase(workloads, Workload::kTrace);
    add_cells(plan, workloads, {Api::kLink}, {1, 64}, {1});
  } else {
    add_cells(plan, workloads, apis, raw.callers.empty() ? callers : raw.callers,
              raw.batches.empty() ? batches : raw.batches);
  }
  if (plan.cells.empty())
    return refuse(Reason::kInvalidArgument, "--api link goes with --batch 1 only");
  return check(plan);
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  RawOptions raw;
  CLI::App app{
      "Measures berthd over its protocol, beside a gRPC echo of the same message sizes and the "
      "other "
      "floors of this machine, in the same run.",
      "berth-bench"};
  declare(app, parsed.options, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
    return parsed;
  }
  if (!parsed.options.echo_addresses.empty()) return parsed;
  if (const Result<> understood = understand(parsed.options, raw, app); !understood) {
    std::cerr << "berth-bench: " << understood.error().message << "\n";
    parsed.exit_code = 2;
  }
  return parsed;
}

}  // namespace berth::bench
