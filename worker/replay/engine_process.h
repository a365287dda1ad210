// Engines as processes of their own (--processes), so that one can be killed without the others. A
// child writes lines into a pipe: "progress N" now and then, "counts {...}" at the end. A pipe that
// ends without counts is a lost engine.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "common/error.h"
#include "worker/replay/child_process.h"
#include "worker/replay/counts.h"
#include "worker/replay/options.h"
#include "worker/replay/progress.h"

namespace berth::replay {

// In the parent. Prints "engine K pid P" to standard error, for whoever wants to kill it.
class EngineProcess {
 public:
  // Adds to `progress`, which outlives this. Errors: kIoError.
  static Result<std::unique_ptr<EngineProcess>> start(const ReplayOptions& options, uint32_t engine,
                                                      Progress& progress);
  ~EngineProcess();

  bool has_ended() const { return process_.has_ended(); }
  void ask_to_stop() const { process_.ask_to_stop(); }
  // Waits for the end of its report. Errors: kUnavailable when it was lost, with what it said.
  Result<Counts> finish();

 private:
  EngineProcess(ChildProcess process, UniqueFd pipe)
      : process_(std::move(process)), pipe_(std::move(pipe)) {}
  void read_report(Progress& progress);
  void take_line(const std::string& line, Progress& progress);

  ChildProcess process_;
  UniqueFd pipe_;
  std::thread reader_;
  // The reader's until it is joined.
  uint64_t done_ = 0;
  std::string counts_;
};

// In the child: replays its share and reports into options.report_fd. The exit code of the process.
int run_engine_process(const ReplayOptions& options);

}  // namespace berth::replay
