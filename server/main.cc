// berthd: the Berth server. Command line, configuration, signals, exit codes; the rest is Daemon.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "common/config.h"
#include "common/log.h"
#include "common/service_notify.h"
#include "common/signals.h"
#include "common/version.h"
#include "server/daemon.h"

namespace berth {
namespace {

// Scripts and unit files rely on them: never renumber.
enum ExitCode : int {
  kStopped = 0,
  kFailed = 1,
  kUsage = 2,  // command line or configuration
  kStateDirectoryInUse = 3,
  kStoreUnusable = 4,  // written by a newer version, or damaged
};

ExitCode exit_code_of(Reason reason) {
  switch (reason) {
    case Reason::kInvalidConfig:
      return kUsage;
    case Reason::kStoreLocked:
      return kStateDirectoryInUse;
    case Reason::kStoreIncompatible:
    case Reason::kStoreCorrupt:
      return kStoreUnusable;
    default:
      return kFailed;
  }
}

struct Options {
  std::string config;
  bool check_config = false;
  bool insecure = false;
};

ExitCode refuse_start(const Error& error) {
  std::fprintf(stderr, "berthd: %s\n", error.message.c_str());
  return exit_code_of(error.reason);
}

// A file that was named must be there; the default one may be missing.
Result<Config> load_config(const std::string& path) {
  if (!path.empty()) return Config::load(path);
  if (access(kServerConfigDefault, F_OK) == 0) return Config::load(kServerConfigDefault);
  return Config::parse("", "(defaults)");
}

ExitCode serve(const ServerConfig& config) {
  const ServiceNotify notify = ServiceNotify::from_environment();
  // Before any thread exists: each inherits the mask.
  const auto signals = block_stop_signals();
  if (!signals) return refuse_start(signals.error());
  log::set_level(config.log_level);
  Daemon daemon(config, notify, signals->get());
  if (const auto started = daemon.start(); !started) {
    log::error("start_failed",
               {{"reason", started.error().reason}, {"why", started.error().message}});
    notify.status("start failed: " + started.error().message);
    return exit_code_of(started.error().reason);
  }
  daemon.run();
  daemon.stop();
  return kStopped;
}

ExitCode run(const Options& options) {
  auto file = load_config(options.config);
  if (!file) return refuse_start(file.error());
  ServerOverrides overrides;
  overrides.insecure = options.insecure;
  if (const char* given = std::getenv("STATE_DIRECTORY")) overrides.state_directory = given;
  const ServerConfig config = read_server_config(*file, overrides);
  if (const auto read = file->finish(); !read) return refuse_start(read.error());
  if (options.check_config) {
    std::fputs(file->describe().c_str(), stdout);
    return kStopped;
  }
  return serve(config);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) {
  berth::Options options;
  CLI::App app("berthd, the Berth server: the directory of KV objects of an LLM fleet.", "berthd");
  app.add_option("--config", options.config,
                 "Configuration file (TOML). Default: " + std::string(berth::kServerConfigDefault) +
                     " if it exists, else the documented defaults");
  app.add_flag("--check-config", options.check_config,
               "Print every value in force, or every mistake, and exit");
  app.add_flag("--insecure", options.insecure,
               "Allow plain TCP listeners that other hosts can reach");
  app.set_version_flag("--version", std::string(berth::kVersion));
  app.footer(
      "Exit codes: 0 stopped, 1 failed, 2 command line or configuration, 3 the state directory is\n"
      "in use, 4 the store is damaged or of a newer version.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? berth::kStopped : berth::kUsage;
  }
  return berth::run(options);
}
