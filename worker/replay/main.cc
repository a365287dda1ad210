// berth-replay: an engine that does the real job on real request traces. See docs/replay.md.
// Exit codes: 0 clean; 1 a wrong byte, an error, or a lost engine; 2 wrong use.
#include <cstdio>

#include "common/log.h"
#include "common/signals.h"
#include "worker/replay/engine_process.h"
#include "worker/replay/options.h"
#include "worker/replay/replay.h"
#include "worker/replay/report.h"

int main(int argc, char** argv) {
  using namespace berth;
  const replay::ParsedOptions parsed = replay::parse_options(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  const replay::ReplayOptions& options = parsed.options;
  log::set_level(options.verbose ? log::Level::kInfo : log::Level::kError);
  if (options.engine_index) return replay::run_engine_process(options);

  const Result<UniqueFd> signals = block_stop_signals();
  if (!signals) {
    std::fprintf(stderr, "berth-replay: %s\n", signals.error().message.c_str());
    return 1;
  }
  const Result<replay::ReplayResult> result = replay::run_replay(options, signals->get());
  if (!result) {
    std::fprintf(stderr, "berth-replay: %s\n", result.error().message.c_str());
    return result.error().reason == Reason::kInvalidArgument ? 2 : 1;
  }
  const std::string text =
      options.json ? replay::to_json(*result) + "\n" : replay::to_text(*result);
  std::fputs(text.c_str(), stdout);
  return result->is_clean() ? 0 : 1;
}
