#include "tests/integration/cluster.h"

#include <signal.h>

#include <catch2/catch.hpp>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

namespace berth::testing {
namespace {

constexpr size_t kLogShownMax = 6000;

// The port at which this process listens: the kernel's tables know, whatever the logs say.
uint16_t listening_port(pid_t pid) {
  std::set<std::string> sockets;  // inodes
  std::error_code error;
  const std::string process = "/proc/" + std::to_string(pid);
  for (const auto& entry : std::filesystem::directory_iterator(process + "/fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);  // the heading
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state == "0A" && sockets.count(inode))
      return static_cast<uint16_t>(std::stoul(local.substr(local.find(':') + 1), nullptr, 16));
  }
  FAIL("process " << pid << " listens at no TCP port");
  return 0;
}

void end_well(Process& process, Duration bound) {
  process.signal(SIGTERM);
  const int code = process.wait_for_end(bound).value_or(-1);
  INFO(process.log());
  REQUIRE(code == 0);
}

void print_logs(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".log") continue;
    std::string text = read_file(entry.path().string());
    if (text.size() > kLogShownMax) text = "...\n" + text.substr(text.size() - kLogShownMax);
    std::cerr << "==== " << entry.path().filename().string() << "\n" << text << "\n";
  }
}

}  // namespace

// ---- Server ---------------------------------------------------------------------------------

ServerProcess::ServerProcess(const std::string& directory, ServerTuning with)
    : tuning(std::move(with)),
      directory_(directory),
      address_(server_address(directory)),
      admin_(address_) {}

void ServerProcess::launch() {
  process_.reset();
  std::filesystem::create_directory(state_directory());
  write_file(config_path(), server_config(directory_, tuning));
  process_ = std::make_unique<Process>(
      ProcessOptions{.arguments = {program("berthd"), "--config", config_path()},
                     .log = directory_ + "/berthd.log",
                     .environment = environment,
                     .descriptors_max = descriptors_max});
}

void ServerProcess::start() {
  launch();
  REQUIRE(eventually([&] { return process_->has_ended() || admin_.is_serving(); }));
  INFO(log());
  REQUIRE_FALSE(process_->has_ended());
}

void ServerProcess::restart_after_kill() {
  process_->kill_hard();
  start();
}

void ServerProcess::stop_gracefully(Duration bound) { end_well(*process_, bound); }

uint16_t ServerProcess::http_port() const { return listening_port(process_->pid()); }

// ---- Worker ---------------------------------------------------------------------------------

WorkerProcess::WorkerProcess(const std::string& directory, Admin& admin, WorkerTuning with)
    : tuning(std::move(with)),
      directory_(directory),
      admin_(admin),
      socket_(worker_socket(directory, tuning)),
      pool_(tuning.pool_name()) {}

void WorkerProcess::launch() {
  process_.reset();
  std::filesystem::create_directory(worker_runtime(directory_, tuning));
  write_file(config_path(), worker_config(directory_, tuning));
  process_ = std::make_unique<Process>(ProcessOptions{
      .arguments = {program("berth-worker"), "--config", config_path()}, .log = log_path()});
}

void WorkerProcess::start() {
  launch();
  REQUIRE(eventually([&] { return process_->has_ended() || is_ready(); }));
  INFO(process_->log());
  REQUIRE_FALSE(process_->has_ended());
}

void WorkerProcess::stop_gracefully(Duration bound) { end_well(*process_, bound); }

bool WorkerProcess::is_ready() {
  const auto usage = admin_.try_usage();
  if (!usage) return false;
  for (const v1::PoolRow& row : usage->pools())
    if (row.spec().name() == pool_ && row.owner_name() == tuning.name &&
        row.state() == v1::POOL_STATE_LIVE)
      return true;
  return false;
}

// ---- Cluster --------------------------------------------------------------------------------

Cluster::Cluster(ServerTuning tuning)
    : exceptions_at_start_(std::uncaught_exceptions()),
      server(directory_.path(), std::move(tuning)) {
  server.start();
}

Cluster::~Cluster() {
  if (std::uncaught_exceptions() > exceptions_at_start_) print_logs(directory());
}

WorkerProcess& Cluster::add_worker(const WorkerTuning& tuning) {
  workers_.push_back(std::make_unique<WorkerProcess>(directory(), server.admin(), tuning));
  workers_.back()->start();
  return *workers_.back();
}

std::unique_ptr<Engine> Cluster::engine(const WorkerProcess& worker, const std::string& engine_id,
                                        Enter enter) {
  return std::make_unique<Engine>(worker.socket(), engine_id, path(engine_id + ".log"), enter);
}

void Cluster::check_at_rest() {
  CHECK(server.admin().reservations().empty());
  CHECK(server.admin().leases().empty());
  CHECK(server.admin().check() == "");
}

}  // namespace berth::testing
