// What a replay was asked to do, checked: from the command line, and back to one for the process of
// a single engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/time.h"
#include "worker/replay/generate.h"
#include "worker/replay/router.h"

namespace berth::replay {

inline constexpr uint32_t kEnginesMax = 256;
inline constexpr uint32_t kWorkersMax = 64;

struct ReplayOptions {
  // The requests: a file, or a generated trace.
  std::string trace;
  std::optional<TraceKind> generate;
  std::string generate_word;
  uint64_t seed = 1;
  uint64_t generated_requests = 1000;
  uint64_t limit = 0;    // zero: all
  uint64_t warm_up = 0;  // requests of the trace whose skips are counted apart

  // Who replays them, against what.
  uint32_t engines = 1;
  bool processes = false;
  Routing routing = Routing::kPrefix;
  std::string routing_word = "prefix";
  double speed = 0;  // zero: as fast as possible; 1: as recorded
  std::vector<std::string> worker_sockets;
  Duration probe_deadline = seconds(1);
  // After a request that missed because of an outage: an engine would be busy computing it.
  Duration outage_pause = milliseconds(10);

  // The blocks.
  std::string name_space = "replay";
  uint64_t block_bytes = 64 << 10;
  uint32_t shards = 1;
  uint32_t parts = 1;

  // --local: a fleet of its own.
  bool local = false;
  uint32_t workers = 1;
  uint64_t cpu_pool_bytes = uint64_t{1} << 30;
  std::string scope = "host";
  std::string eviction_policy = "adaptive";
  std::string keep;  // directory to use and to leave; empty: a temporary one

  bool json = false;
  bool verbose = false;

  // Set for an engine process only.
  std::optional<uint32_t> engine_index;
  int report_fd = -1;
};

struct ParsedOptions {
  ReplayOptions options;
  std::optional<int>
      exit_code;  // set when there is nothing to do: --help, --version, a wrong option
};

// Prints help and refusals itself.
ParsedOptions parse_options(int argc, const char* const* argv);

// The command line of the process that replays one engine's share, without the program.
std::vector<std::string> engine_arguments(const ReplayOptions& options, uint32_t engine,
                                          int report_fd);

// Reads or makes the requests. Errors: kInvalidArgument.
Result<std::vector<Request>> requests_of(const ReplayOptions& options);

}  // namespace berth::replay
