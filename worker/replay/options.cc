#include "worker/replay/options.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "common/names.h"
#include "common/units.h"
#include "common/version.h"

namespace berth::replay {
namespace {

constexpr uint64_t kBlockBytesMax = uint64_t{1} << 30;

// Options as text, before they are understood.
struct RawOptions {
  std::string block_bytes = "64KiB";
  std::string cpu_pool = "1GiB";
  std::string probe_deadline = "1s";
  std::string outage_pause = "10ms";
  int64_t engine_index = -1;
};

void declare(CLI::App& app, ReplayOptions& options, RawOptions& raw) {
  app.set_version_flag("--version", std::string(kVersion));
  auto* trace =
      app.add_option("--trace", options.trace, "Requests: a JSONL file, one request a line")
          ->option_text("FILE");
  app.add_option("--generate", options.generate_word,
                 "Requests: made up, 'chat', 'rag' or 'agents' (default chat without --trace)")
      ->option_text("KIND")
      ->excludes(trace);
  app.add_option("--seed", options.seed, "Seed of --generate")->option_text("N");
  app.add_option("--requests", options.generated_requests, "Length of --generate (default 1000)")
      ->option_text("N");
  app.add_option("--limit", options.limit, "Only the first N requests")->option_text("N");
  app.add_option("--warm-up", options.warm_up,
                 "Skips of the first N requests of the trace are counted apart (default 0)")
      ->option_text("N");

  app.add_option("--engines", options.engines, "Engines that replay at the same time (default 1)")
      ->option_text("N");
  app.add_flag("--processes", options.processes,
               "Each engine is a process of its own, not a thread");
  app.add_option(
         "--routing", options.routing_word,
         "Requests to engines: 'prefix' (default, as a prefix-aware router) or 'round-robin'")
      ->option_text("WORD");
  app.add_option("--speed", options.speed,
                 "1 replays at the recorded pace, 2 twice as fast; 0 (default) as fast as possible")
      ->option_text("FACTOR");
  app.add_option("--probe-deadline", raw.probe_deadline,
                 "A probe without an answer is a miss after this time (default 1s)")
      ->option_text("DURATION");

  app.add_option("--outage-pause", raw.outage_pause,
                 "Wait after a request that an outage made a miss (default 10ms)")
      ->option_text("DURATION");

  app.add_option("--block-bytes", raw.block_bytes,
                 "Bytes of one block, of one shard's part (default 64KiB)")
      ->option_text("SIZE");
  app.add_option("--namespace", options.name_space, "Namespace of the blocks (default replay)")
      ->option_text("NAME");
  app.add_option("--shards", options.shards, "Shards of a block (default 1)")->option_text("N");
  app.add_option("--parts", options.parts, "Parts of a shard (default 1)")->option_text("N");

  auto* sockets =
      app.add_option("--worker-socket", options.worker_sockets,
                     "Unix socket of a running berth-worker; repeat it to spread the engines")
          ->option_text("PATH");
  app.add_flag("--local", options.local,
               "Start a berthd and workers of its own, and stop them at the end")
      ->excludes(sockets);
  app.add_option("--workers", options.workers, "--local: workers (default 1)")->option_text("N");
  app.add_option("--cpu-pool", raw.cpu_pool, "--local: pool of each worker (default 1GiB)")
      ->option_text("SIZE");
  app.add_option("--scope", options.scope, "--local: 'host' (default) or 'process' pools")
      ->option_text("WORD");
  app.add_option("--eviction-policy", options.eviction_policy,
                 "--local: adaptive (default), lru, s3fifo or lfu_da")
      ->option_text("WORD");
  app.add_option("--keep", options.keep, "--local: work in this directory and leave it behind")
      ->option_text("DIR");

  app.add_flag("--json", options.json, "Print the figures as one JSON object");
  app.add_flag("--verbose", options.verbose, "Log what happens to standard error");
  app.add_option("--engine-index", raw.engine_index)->group("");
  app.add_option("--report-fd", options.report_fd)->group("");
}

Result<> check_range(std::string_view name, uint64_t value, uint64_t min, uint64_t max) {
  if (value >= min && value <= max) return {};
  return refuse(Reason::kInvalidArgument, std::string(name) + " " + std::to_string(value) +
                                              ": accepted are " + std::to_string(min) + " to " +
                                              std::to_string(max));
}

Result<> understand_words(ReplayOptions& options, const RawOptions& raw) {
  if (options.trace.empty() && options.generate_word.empty()) options.generate_word = "chat";
  if (!options.generate_word.empty()) {
    const Result<TraceKind> kind = parse_trace_kind(options.generate_word);
    if (!kind) return tl::unexpected(kind.error());
    options.generate = *kind;
  }
  const Result<Routing> routing = parse_routing(options.routing_word);
  if (!routing) return tl::unexpected(routing.error());
  options.routing = *routing;
  if (options.scope != "host" && options.scope != "process")
    return refuse(Reason::kInvalidArgument,
                  "--scope " + options.scope + ": accepted are host and process");
  const auto& policy = options.eviction_policy;
  if (policy != "adaptive" && policy != "lru" && policy != "s3fifo" && policy != "lfu_da")
    return refuse(Reason::kInvalidArgument, "--eviction-policy " + policy +
                                                ": accepted are adaptive, lru, s3fifo and lfu_da");
  const Result<uint64_t> block_bytes = parse_size("--block-bytes", raw.block_bytes);
  if (!block_bytes) return tl::unexpected(block_bytes.error());
  const Result<uint64_t> cpu_pool = parse_size("--cpu-pool", raw.cpu_pool);
  if (!cpu_pool) return tl::unexpected(cpu_pool.error());
  const Result<Duration> deadline = parse_duration("--probe-deadline", raw.probe_deadline);
  if (!deadline) return tl::unexpected(deadline.error());
  const Result<Duration> pause = parse_duration("--outage-pause", raw.outage_pause);
  if (!pause) return tl::unexpected(pause.error());
  options.outage_pause = *pause;
  options.block_bytes = *block_bytes;
  options.cpu_pool_bytes = *cpu_pool;
  options.probe_deadline = *deadline;
  if (raw.engine_index >= 0) options.engine_index = static_cast<uint32_t>(raw.engine_index);
  return validate_name("--namespace", options.name_space, kNamespaceNameLengthMax);
}

Result<> check(ReplayOptions& options, const RawOptions& raw) {
  if (const Result<> understood = understand_words(options, raw); !understood) return understood;
  for (const Result<>& checked :
       {check_range("--engines", options.engines, 1, kEnginesMax),
        check_range("--workers", options.workers, 1, kWorkersMax),
        check_range("--block-bytes", options.block_bytes, 1, kBlockBytesMax),
        check_range("--shards", options.shards, 1, 64),
        check_range("--parts", options.parts, 1, 64),
        check_range("--requests", options.generated_requests, 1, 10'000'000),
        check_range("--cpu-pool", options.cpu_pool_bytes, options.block_bytes, uint64_t{1} << 46)})
    if (!checked) return checked;
  if (options.speed < 0) return refuse(Reason::kInvalidArgument, "--speed: accepted is 0 or more");
  if (!options.local && options.worker_sockets.empty())
    return refuse(
        Reason::kInvalidArgument,
        "nothing to replay against: give --local, or --worker-socket PATH of a running worker");
  return {};
}

}  // namespace

ParsedOptions parse_options(int argc, const char* const* argv) {
  ParsedOptions parsed;
  RawOptions raw;
  CLI::App app{
      "Replays a request trace as engines would: probe each prompt's prefix, load and verify every "
      "byte "
      "that is there, store the rest.",
      "berth-replay"};
  declare(app, parsed.options, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error);
    return parsed;
  }
  if (const Result<> checked = check(parsed.options, raw); !checked) {
    std::cerr << "berth-replay: " << checked.error().message << "\n";
    parsed.exit_code = 2;
  }
  return parsed;
}

std::vector<std::string> engine_arguments(const ReplayOptions& options, uint32_t engine,
                                          int report_fd) {
  std::vector<std::string> arguments;
  const auto add = [&arguments](std::string name, std::string value) {
    arguments.push_back(std::move(name));
    arguments.push_back(std::move(value));
  };
  if (options.generate) {
    add("--generate", options.generate_word);
    add("--seed", std::to_string(options.seed));
    add("--requests", std::to_string(options.generated_requests));
  } else {
    add("--trace", options.trace);
  }
  add("--limit", std::to_string(options.limit));
  add("--warm-up", std::to_string(options.warm_up));
  add("--engines", std::to_string(options.engines));
  add("--routing", options.routing_word);
  add("--speed", std::to_string(options.speed));
  add("--probe-deadline", std::to_string(options.probe_deadline.millis) + "ms");
  add("--outage-pause", std::to_string(options.outage_pause.millis) + "ms");
  add("--block-bytes", std::to_string(options.block_bytes));
  add("--namespace", options.name_space);
  add("--shards", std::to_string(options.shards));
  add("--parts", std::to_string(options.parts));
  for (const std::string& socket : options.worker_sockets) add("--worker-socket", socket);
  if (options.verbose) arguments.push_back("--verbose");
  add("--engine-index", std::to_string(engine));
  add("--report-fd", std::to_string(report_fd));
  return arguments;
}

Result<std::vector<Request>> requests_of(const ReplayOptions& options) {
  if (!options.generate) return read_trace(options.trace, options.limit);
  std::vector<Request> requests =
      generate_trace(*options.generate, options.seed, options.generated_requests);
  if (options.limit != 0 && options.limit < requests.size()) requests.resize(options.limit);
  return requests;
}

}  // namespace berth::replay
