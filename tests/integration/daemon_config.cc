#include "tests/integration/daemon_config.h"

#include <sstream>

namespace berth::testing {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string in_millis(Duration duration) { return quoted(std::to_string(duration.millis) + "ms"); }

std::string http_value(Http http, const std::string& listen) {
  if (!listen.empty()) return quoted(listen);
  return http == Http::kOff ? quoted("off") : quoted("127.0.0.1:0");
}

}  // namespace

std::string server_address(const std::string& directory) {
  return "unix:" + directory + "/berthd.sock";
}

std::string server_state(const std::string& directory, const ServerTuning& tuning) {
  return tuning.state_directory.empty() ? directory + "/state" : tuning.state_directory;
}

std::string server_config(const std::string& directory, const ServerTuning& tuning) {
  std::ostringstream text;
  text << "[server]\n"
       << "listen = [" << quoted(server_address(directory)) << "]\n"
       << "http = " << http_value(tuning.http, tuning.http_listen) << "\n"
       << "state_directory = " << quoted(server_state(directory, tuning)) << "\n"
       << "\n[store]\n"
       << "durability = " << quoted(tuning.durability) << "\n"
       << "memtable = " << quoted(std::to_string(tuning.memtable_bytes / kMiB) + "MiB") << "\n"
       << "reopen_interval = " << in_millis(tuning.reopen_every) << "\n\n"
       << "[timing]\n"
       << "heartbeat_interval = " << in_millis(tuning.heartbeat_every) << "\n"
       << "heartbeat_deadline = " << in_millis(tuning.heartbeat_deadline) << "\n"
       << "write_deadline = " << in_millis(tuning.write_within) << "\n"
       << "lease_ttl = " << in_millis(tuning.lease_ttl) << "\n"
       << "reclaim_again = " << in_millis(tuning.reclaim_again) << "\n\n"
       << "[limits]\n"
       << "batch_items_max = " << tuning.batch_items_max << "\n"
       << "slice_records = " << tuning.slice_records << "\n";
  return text.str();
}

std::string worker_socket(const std::string& directory, const WorkerTuning& tuning) {
  return directory + "/" + (tuning.runtime.empty() ? "" : tuning.runtime + "-") + tuning.name +
         ".sock";
}

std::string worker_runtime(const std::string& directory, const WorkerTuning& tuning) {
  return directory + "/" + (tuning.runtime.empty() ? "run" : tuning.runtime);
}

std::string worker_config(const std::string& directory, const WorkerTuning& tuning) {
  std::ostringstream text;
  text << "[worker]\n"
       << "name = " << quoted(tuning.name) << "\n"
       << "node = " << quoted(tuning.node) << "\n"
       << "server = " << quoted(tuning.server.empty() ? server_address(directory) : tuning.server)
       << "\n"
       << "socket = " << quoted(worker_socket(directory, tuning)) << "\n"
       << "runtime_directory = " << quoted(worker_runtime(directory, tuning)) << "\n"
       << "http = " << http_value(tuning.http, "") << "\n\n"
       << "[[pool]]\n"
       << "name = " << quoted(tuning.pool_name()) << "\n"
       << "medium = \"cpu\"\n"
       << "scope = " << quoted(tuning.scope) << "\n"
       << "capacity = " << quoted(std::to_string(tuning.pool_bytes / kKiB) + "KiB") << "\n"
       << "page = " << quoted(std::to_string(tuning.page_bytes / kKiB) + "KiB") << "\n";
  if (!tuning.engine.empty()) text << "engine = " << quoted(tuning.engine) << "\n";
  return text.str();
}

}  // namespace berth::testing
