// berth-worker: options and exit codes. 0 stopped as asked, 1 failed, 2 bad options or
// configuration, 3 a live worker has this name.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "common/signals.h"
#include "common/version.h"
#include "worker/worker.h"

int main(int argc, char** argv) {
  CLI::App app{"berth-worker: the pools of one host or GPU, and the engines that use them"};
  std::string path = "/etc/berth/berth-worker.toml";
  bool check_config = false;
  app.add_option("--config", path, "Configuration file (TOML)")->capture_default_str();
  app.add_flag("--check-config", check_config,
               "Print the values in force, or every mistake, and exit");
  app.set_version_flag("--version", std::string(berth::kVersion));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : berth::worker::kExitBadConfig;
  }

  const auto stop = berth::block_stop_signals();
  if (!stop) {
    std::fprintf(stderr, "berth-worker: %s\n", stop.error().message.c_str());
    return berth::worker::kExitFailed;
  }
  const berth::HostMemory host = berth::read_host_memory().value_or(berth::HostMemory{});
  const auto config = berth::worker::load_worker_config(path, host);
  if (!config) {
    std::fprintf(stderr, "%s\n", config.error().message.c_str());
    return berth::worker::kExitBadConfig;
  }
  if (check_config) {
    std::fputs(config->description.c_str(), stdout);
    return 0;
  }
  return berth::worker::run_worker(*config, host, stop->get());
}
