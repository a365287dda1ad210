#include "server/daemon.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "common/host_facts.h"
#include "common/log.h"
#include "common/random.h"
#include "common/signals.h"
#include "common/text.h"
#include "common/version.h"
#include "server/directory_metrics.h"
#include "server/stop_guard.h"
#include "server/store/rocksdb_store.h"

namespace berth {
namespace {

// Opening the store replays its log: seconds, on a slow disk a minute.
constexpr Duration kOpenWithin = seconds(120);
// While records come in, the next word is at most this far away.
constexpr Duration kProgressWithin = seconds(30);
constexpr Duration kProgressEvery = seconds(1);
// The main loop looks at health and watchdog at least this often.
constexpr Duration kLookEvery = seconds(1);

Result<> require_directory(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) return {};
  return refuse(Reason::kInvalidConfig,
                name_and_value("server.state_directory", path) +
                    ": not a directory; accepted: one that exists and that berthd may write");
}

std::string addresses_text(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) text += (text.empty() ? "" : ", ") + address.text();
  return text;
}

}  // namespace

Daemon::Daemon(ServerConfig config, const ServiceNotify& notify, int stop_signals)
    : config_(std::move(config)),
      notify_(notify),
      stop_signals_(stop_signals),
      http_(registry_, health_) {}

Daemon::~Daemon() { stop(); }

Result<> Daemon::start() {
  const uint64_t open_files = raise_open_files_limit();
  log::info("starting", {{"version", kVersion},
                         {"state_directory", config_.state_directory},
                         {"open_files", open_files}});
  if (auto exists = require_directory(config_.state_directory); !exists) return exists;
  if (auto listening = start_http(); !listening) return listening;
  notify_.extend_timeout(kOpenWithin);
  notify_.status("opening the store");
  auto store = open_store();
  if (!store) return tl::unexpected(store.error());
  sequencer_ = std::make_unique<Sequencer>(config_.sequencer, std::move(*store), clock_);
  rpc_ = std::make_unique<rpc::RpcEndpoint>(
      config_.rpc, *sequencer_, health_, registry_, clock_,
      rpc::ServerFacts{std::string(kVersion), std::string(name_of(config_.sequencer.durability)),
                       config_.state_directory, wall_clock_millis(), clock_.monotonic_millis()});
  event_counter_ = std::make_shared<EventCounter>(registry_, sequencer_->events());
  if (auto watched = sequencer_->events().watch(event_counter_); !watched) return watched;
  add_directory_metrics(registry_, *sequencer_, health_);
  http_.show_metrics();
  const auto progress = [this](uint64_t records) { on_progress(records); };
  if (auto started = sequencer_->start(random_id128(), rpc_.get(), progress); !started)
    return started;
  return start_rpc();
}

Result<std::unique_ptr<Store>> Daemon::open_store() const {
  RocksDbStoreOptions options;
  options.directory = config_.state_directory;
  options.durability = config_.sequencer.durability;
  options.memtable_bytes = config_.memtable_bytes;
  options.open_files_max = config_.open_files_max;
  auto opened = RocksDbStore::open(std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  return std::unique_ptr<Store>(std::move(*opened));
}

// A stop that is asked for meanwhile ends the process at once: nothing was promised yet.
void Daemon::on_progress(uint64_t records) {
  if (is_stop_asked()) {
    log::info("stopped", {{"while", "reading the store"}});
    std::_Exit(EXIT_SUCCESS);
  }
  const int64_t now = clock_.monotonic_millis();
  if (now - progress_told_millis_ < kProgressEvery.millis) return;
  progress_told_millis_ = now;
  notify_.extend_timeout(kProgressWithin);
  notify_.status("reading the store: " + std::to_string(records) + " records");
  log::info("reading_store", {{"records", records}});
}

Result<> Daemon::start_http() {
  if (!config_.http) return {};
  if (auto started = http_.start(*config_.http, clock_); !started) return started;
  log::info("http_listening", {{"address", http_.address().text()}});
  return {};
}

Result<> Daemon::start_rpc() {
  if (auto started = rpc_->start(config_.listeners); !started) return started;
  const std::string trouble = sequencer_->degraded_reason();
  if (trouble.empty())
    health_.set_serving();
  else
    health_.set_degraded(trouble);
  const auto identity = [&] {
    const auto view = sequencer_->view();
    return view->meta();
  }();
  log::info("serving", {{"addresses", addresses_text(rpc_->addresses())},
                        {"store", identity.store_id},
                        {"epoch", identity.epoch}});
  notify_.ready("serving");
  return {};
}

// ---- Running --------------------------------------------------------------------------------

void Daemon::run() {
  const auto watchdog = notify_.watchdog_every();
  const Duration look_every = watchdog ? std::min(*watchdog, kLookEvery) : kLookEvery;
  while (!is_stop_asked()) {
    tell_health();
    feed_watchdog();
    pollfd signals{stop_signals_, POLLIN, 0};
    poll(&signals, 1, static_cast<int>(look_every.millis));
  }
}

bool Daemon::is_stop_asked() const {
  for (int number = take_stop_signal(stop_signals_); number != 0;
       number = take_stop_signal(stop_signals_)) {
    if (number != SIGHUP) {
      log::info("stop_asked", {{"signal", number == SIGTERM ? "SIGTERM" : "SIGINT"}});
      return true;
    }
    log::warning("reload_ignored", {{"why", "the configuration is read at the start only"}});
  }
  return false;
}

void Daemon::tell_health() {
  const rpc::ServerHealth::Snapshot now = health_.get();
  if (now.health == health_told_) return;
  health_told_ = now.health;
  notify_.status(now.health == v1::HEALTH_SERVING ? "serving" : now.reason);
}

// A sequencer that stands still serves nobody: then the service manager may restart us.
void Daemon::feed_watchdog() {
  const uint64_t turns = sequencer_->turns();
  if (turns == turns_seen_) return;
  turns_seen_ = turns;
  notify_.watchdog();
}

void Daemon::stop() {
  if (!sequencer_) return;
  const StopGuard guard(kStopWithin);
  notify_.stopping();
  health_.set_stopping();
  rpc_->stop(kCallsFinishWithin);
  sequencer_->stop();
  http_.stop();
  rpc_.reset();
  event_counter_.reset();
  sequencer_.reset();
  log::info("stopped");
}

}  // namespace berth
