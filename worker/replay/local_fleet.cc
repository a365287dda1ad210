#include "worker/replay/local_fleet.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/os_error.h"
#include "common/units.h"

namespace berth::replay {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPageBytesMin = 4096;
constexpr Duration kStopWithin = seconds(10);
constexpr size_t kLogLinesShown = 30;
// Engines all join one worker at worst; somebody may want to look in beside them.
constexpr uint32_t kClientsSpare = 8;

// Blocks that are a power of two get a page each; others take a run of small ones.
uint64_t page_bytes_for(uint64_t block_bytes) {
  const bool is_power = (block_bytes & (block_bytes - 1)) == 0;
  return is_power && block_bytes > kPageBytesMin ? block_bytes : kPageBytesMin;
}

Result<std::string> make_directory(const std::string& keep) {
  if (!keep.empty()) {
    std::error_code failed;
    fs::create_directories(keep, failed);
    if (failed) return refuse_os("make directory " + keep, failed.value());
    return fs::absolute(keep).string();
  }
  std::string pattern = (fs::temp_directory_path() / "berth-replay-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) return refuse_os("make a directory like " + pattern);
  return pattern;
}

Result<> write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return refuse_os("write " + path);
  return {};
}

}  // namespace

Result<LocalFleet> LocalFleet::start(const ReplayOptions& options) {
  const Result<std::string> directory = make_directory(options.keep);
  if (!directory) return tl::unexpected(directory.error());
  LocalFleet fleet(*directory, !options.keep.empty());
  std::error_code ignored;
  fs::create_directories(fleet.path("state"), ignored);
  fs::create_directories(fleet.path("run"), ignored);
  if (const Result<> started = fleet.start_member("berthd", "berthd", fleet.server_config(options));
      !started)
    return tl::unexpected(started.error());
  for (uint32_t i = 0; i < options.workers; ++i) {
    const std::string name = "w" + std::to_string(i);
    const Result<> started =
        fleet.start_member("berth-worker", name, fleet.worker_config(name, options));
    if (!started) return tl::unexpected(started.error());
  }
  return fleet;
}

Result<> LocalFleet::start_member(const std::string& program, const std::string& name,
                                  const std::string& config) {
  const std::string config_path = path(name + ".toml");
  if (const Result<> written = write_file(config_path, config); !written) return written;
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return refuse_os("find our own program", failed.value());
  ChildOptions child;
  child.program = (self.parent_path() / program).string();
  child.arguments = {"--config", config_path};
  child.log = path(name + ".log");
  Result<ChildProcess> process = ChildProcess::start(child);
  if (!process) return tl::unexpected(process.error());
  members_.push_back({name, std::move(*process)});
  return write_file(path(name + ".pid"), std::to_string(members_.back().process.pid()) + "\n");
}

LocalFleet::~LocalFleet() {
  if (members_.empty() && directory_.empty()) return;  // moved from
  for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
    member->process.ask_to_stop();
    member->process.wait_or_kill(kStopWithin);
  }
  std::error_code ignored;
  if (!is_kept_ && !directory_.empty()) fs::remove_all(directory_, ignored);
}

std::string LocalFleet::server_config(const ReplayOptions& options) const {
  std::ostringstream text;
  text << "[server]\n"
       << "listen = [\"unix:" << path("berthd.sock") << "\"]\n"
       << "http = \"off\"\n"
       << "state_directory = \"" << path("state") << "\"\n\n"
       << "[eviction]\n"
       << "policy = \"" << options.eviction_policy << "\"\n";
  return text.str();
}

std::string LocalFleet::worker_config(const std::string& name, const ReplayOptions& options) const {
  const uint64_t page_bytes = page_bytes_for(options.block_bytes);
  const uint64_t capacity = std::max(options.cpu_pool_bytes / page_bytes, uint64_t{1}) * page_bytes;
  std::ostringstream text;
  text << "[worker]\n"
       << "name = \"" << name << "\"\n"
       << "node = \"local\"\n"
       << "server = \"unix:" << path("berthd.sock") << "\"\n"
       << "socket = \"" << path(name + ".sock") << "\"\n"
       << "runtime_directory = \"" << path("run") << "\"\n"
       << "clients_max = " << options.engines + kClientsSpare << "\n\n"
       << "[[pool]]\n"
       << "name = \"cpu\"\n"
       << "medium = \"cpu\"\n"
       << "scope = \"" << options.scope << "\"\n"
       << "capacity = \"" << exact_size(capacity) << "\"\n"
       << "page = \"" << exact_size(page_bytes) << "\"\n";
  return text.str();
}

std::vector<std::string> LocalFleet::worker_sockets() const {
  std::vector<std::string> sockets;
  for (size_t i = 1; i < members_.size(); ++i) sockets.push_back(path(members_[i].name + ".sock"));
  return sockets;
}

std::optional<std::string> LocalFleet::find_dead() const {
  for (const Member& member : members_)
    if (member.process.has_ended()) return member.name;
  return std::nullopt;
}

std::string LocalFleet::logs() const {
  std::string text;
  for (const Member& member : members_)
    text += "--- " + member.name + ".log ---\n" +
            last_lines(path(member.name + ".log"), kLogLinesShown);
  return text;
}

}  // namespace berth::replay
