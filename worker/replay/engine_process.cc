#include "worker/replay/engine_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "common/os_error.h"
#include "common/signals.h"
#include "worker/replay/report.h"
#include "worker/replay/share.h"

namespace berth::replay {
namespace {

constexpr int kReportFd = 3;
constexpr std::string_view kProgressWord = "progress ";
constexpr std::string_view kCountsWord = "counts ";
constexpr Duration kReportEvery = milliseconds(200);

void write_line(int fd, const std::string& text) {
  const std::string line = text + "\n";
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t step = ::write(fd, line.data() + written, line.size() - written);
    if (step <= 0) return;  // nobody listens any more
    written += static_cast<size_t>(step);
  }
}

}  // namespace

// ---- Parent -----------------------------------------------------------------------------------

Result<std::unique_ptr<EngineProcess>> EngineProcess::start(const ReplayOptions& options,
                                                            uint32_t engine, Progress& progress) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return refuse_os("make a pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  ChildOptions child;
  child.program = "/proc/self/exe";
  child.arguments = engine_arguments(options, engine, kReportFd);
  child.pass_fd = write_end.get();
  child.as_fd = kReportFd;
  Result<ChildProcess> process = ChildProcess::start(child);
  if (!process) return tl::unexpected(process.error());
  std::fprintf(stderr, "engine %u pid %d\n", engine, process->pid());
  std::unique_ptr<EngineProcess> started(
      new EngineProcess(std::move(*process), std::move(read_end)));
  EngineProcess* self = started.get();
  started->reader_ = std::thread([self, &progress] { self->read_report(progress); });
  return started;
}

EngineProcess::~EngineProcess() {
  if (!reader_.joinable()) return;
  process_.ask_to_stop();
  reader_.join();
}

void EngineProcess::read_report(Progress& progress) {
  std::string rest;
  char block[65536];
  for (ssize_t got; (got = ::read(pipe_.get(), block, sizeof block)) > 0;) {
    rest.append(block, static_cast<size_t>(got));
    for (size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
      take_line(rest.substr(0, end), progress);
  }
}

void EngineProcess::take_line(const std::string& line, Progress& progress) {
  if (line.starts_with(kCountsWord)) counts_ = line.substr(kCountsWord.size());
  if (!line.starts_with(kProgressWord)) return;
  const uint64_t done = std::strtoull(line.c_str() + kProgressWord.size(), nullptr, 10);
  if (done > done_) progress.add(done - done_);
  done_ = std::max(done, done_);
}

Result<Counts> EngineProcess::finish() {
  if (reader_.joinable()) reader_.join();
  process_.wait_or_kill(seconds(10));
  if (counts_.empty())
    return refuse(Reason::kUnavailable, "an engine process ended without a report");
  return counts_from_json(counts_);
}

// ---- Child ------------------------------------------------------------------------------------

int run_engine_process(const ReplayOptions& options) {
  const Result<UniqueFd> signals = block_stop_signals();
  const Result<std::vector<Request>> requests = requests_of(options);
  if (!signals || !requests) return 2;
  const std::vector<uint32_t> engine_of = route(*requests, options.engines, options.routing);
  Progress progress(requests->size());
  Progress reporting(0);  // only to be told to stop
  std::thread reporter([&] {
    while (!reporting.wait(kReportEvery)) {
      if (take_stop_signal(signals->get()) != 0) progress.stop();
      write_line(options.report_fd, std::string(kProgressWord) + std::to_string(progress.done()));
    }
  });
  const Result<Counts> counts =
      replay_share(options, *requests, engine_of, *options.engine_index, progress);
  reporting.stop();
  reporter.join();
  if (!counts) {
    std::fprintf(stderr, "engine %u: %s\n", *options.engine_index, counts.error().message.c_str());
    return 1;
  }
  write_line(options.report_fd, std::string(kProgressWord) + std::to_string(progress.done()));
  write_line(options.report_fd, std::string(kCountsWord) + counts_to_json(*counts));
  return 0;
}

}  // namespace berth::replay
