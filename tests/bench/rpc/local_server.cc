#include "tests/bench/rpc/local_server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "common/os_error.h"
#include "common/rpc_channel.h"
#include "common/small_file.h"
#include "common/unique_fd.h"

namespace berth::bench {
namespace {

namespace fs = std::filesystem;

constexpr Duration kStopWithin = seconds(20);
constexpr Duration kLookEvery = milliseconds(100);
constexpr size_t kLogLinesShown = 10;

// A port that was free a moment ago: a restarted server must be found where it was.
Result<uint16_t> free_port() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (!socket || ::bind(socket.get(), general, sizeof address) != 0 ||
      ::getsockname(socket.get(), general, &length) != 0)
    return refuse_os("find a free port");
  return ntohs(address.sin_port);
}

Result<std::string> own_folder() {
  std::error_code failed;
  const fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return refuse_os("find our own program", failed.value());
  return self.parent_path().string();
}

}  // namespace

Result<WorkFolder> WorkFolder::make(const std::string& parent) {
  const fs::path where = parent.empty() ? fs::temp_directory_path() : fs::path(parent);
  std::string pattern = fs::absolute(where / "berth-bench-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) return refuse_os("make a directory like " + pattern);
  return WorkFolder(pattern);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<LocalServer> LocalServer::start_berthd(const std::string& folder, const std::string& config,
                                              const std::string& disk_switch) {
  const auto port = free_port();
  const auto programs = own_folder();
  if (!port) return tl::unexpected(port.error());
  if (!programs) return tl::unexpected(programs.error());
  LocalServer server("berthd", folder, *port);
  std::error_code failed;
  fs::create_directories(folder + "/state", failed);
  if (failed) return refuse_os("make directory " + folder + "/state", failed.value());
  std::ostringstream text;
  text << "[server]\n"
       << "listen = [\"" << server.address(Transport::kUnix).text() << "\", \""
       << server.address(Transport::kTcp).text() << "\"]\n"
       << "http = \"off\"\n"
       << "log_level = \"warning\"\n"
       << "state_directory = \"" << folder << "/state\"\n"
       << config;
  const std::string config_path = folder + "/berthd.toml";
  if (const auto written = write_small_file(config_path, text.str()); !written)
    return tl::unexpected(written.error());
  server.options_.program = *programs + "/berthd";
  server.options_.arguments = {"--config", config_path};
  if (!disk_switch.empty()) {
    const std::string shim = *programs + "/libberth-slow-disk.so";
    if (!fs::exists(shim))
      return refuse(Reason::kInvalidArgument, "--during stall needs " + shim + " of the build");
    server.options_.arguments.insert(
        server.options_.arguments.begin(),
        {"LD_PRELOAD=" + shim, "BERTH_SLOW_DISK=" + disk_switch, server.options_.program});
    server.options_.program = "/usr/bin/env";  // becomes berthd: the same process
  }
  if (const Result<> started = server.launch(); !started) return tl::unexpected(started.error());
  return server;
}

Result<LocalServer> LocalServer::start_echo(const std::string& folder) {
  const auto port = free_port();
  if (!port) return tl::unexpected(port.error());
  LocalServer server("echo", folder, *port);
  server.options_.program = "/proc/self/exe";
  server.options_.arguments = {"--echo-server", server.address(Transport::kUnix).text(),
                               server.address(Transport::kTcp).text()};
  if (const Result<> started = server.launch(); !started) return tl::unexpected(started.error());
  return server;
}

LocalServer::~LocalServer() {
  if (!process_) return;
  process_->ask_to_stop();
  process_->wait_or_kill(kStopWithin);
}

Address LocalServer::address(Transport transport) const {
  Address address;
  if (transport == Transport::kUnix) {
    address.kind = AddressKind::kUnix;
    address.path = folder_ + "/" + name_ + ".sock";
  } else {
    address.host = "127.0.0.1";
    address.port = port_;
  }
  return address;
}

void LocalServer::kill_hard() { process_.reset(); }

Result<> LocalServer::start_again() { return launch(); }

// Returns when it takes connections.
Result<> LocalServer::launch() {
  options_.log = folder_ + "/" + name_ + ".log";
  Result<replay::ChildProcess> process = replay::ChildProcess::start(options_);
  if (!process) return tl::unexpected(process.error());
  process_.emplace(std::move(*process));
  const auto channel = make_channel("server", address(Transport::kUnix), {.own_connection = true});
  if (!channel) return tl::unexpected(channel.error());
  while (!(*channel)->WaitForConnected(deadline_in(kLookEvery)))
    if (process_->has_ended())
      return refuse(Reason::kUnavailable, name_ + " does not start:\n" + log_tail());
  return {};
}

std::string LocalServer::log_tail() const {
  return replay::last_lines(options_.log, kLogLinesShown);
}

}  // namespace berth::bench
