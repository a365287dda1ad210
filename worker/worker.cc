#include "worker/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <optional>

#include "common/clock.h"
#include "common/life_lock.h"
#include "common/os_error.h"
#include "common/random.h"
#include "common/rpc_server.h"
#include "common/service_notify.h"
#include "common/signals.h"
#include "common/small_file.h"
#include "common/text.h"
#include "common/units.h"
#include "worker/action_log.h"
#include "worker/http_pages.h"
#include "worker/local/engine_service.h"
#include "worker/name_claim.h"
#include "worker/pool_set.h"
#include "worker/session/link_client.h"
#include "worker/session/wire.h"

namespace berth::worker {
namespace {

constexpr int kRoundMillis = 20;
constexpr Duration kStepMax = seconds(1);  // a longer stall of ours is nobody's silence
constexpr Duration kStopWithin = seconds(5);
constexpr Duration kShutdownWithin = seconds(2);
constexpr int kPrefaultRoundMillis = 500;
constexpr Duration kPrefaultExtend = seconds(30);

bool wait_for_stop(int stop_descriptor, int millis) {
  pollfd entry{stop_descriptor, POLLIN, 0};
  return poll(&entry, 1, millis) > 0 && take_stop_signal(stop_descriptor) != 0;
}

// Holding it proves that every earlier worker of this name is dead. It names us to people.
Result<LifeLock> take_own_lock(const LifeKeeper& keeper, const WorkerConfig& config) {
  const std::string file = config.name + ".life";
  Result<std::optional<LifeLock>> lock = LifeLock::take(keeper.directory(), file);
  if (!lock) return tl::unexpected(lock.error());
  if (!*lock) {
    const std::string path = config.runtime_directory + "/" + file;
    std::string pid = read_small_file(path).value_or("unknown\n");
    if (!pid.empty() && pid.back() == '\n') pid.pop_back();
    return refuse(Reason::kNameInUse, "a live worker named " + config.name + " (pid " + pid +
                                          ") holds " + path +
                                          "; stop it, or choose another worker.name");
  }
  const std::string pid = std::to_string(getpid()) + "\n";
  if (ftruncate((*lock)->descriptor(), 0) != 0 ||
      pwrite((*lock)->descriptor(), pid.data(), pid.size(), 0) !=
          static_cast<ssize_t>(pid.size())) {
    return refuse_os("write " + file);
  }
  return std::move(**lock);
}

std::string percent_text(const PoolSet::Progress& progress) {
  const uint64_t percent =
      progress.total_bytes == 0 ? 100 : progress.done_bytes * 100 / progress.total_bytes;
  return format_size(progress.done_bytes) + " of " + format_size(progress.total_bytes) + ", " +
         std::to_string(percent) + "%";
}

// Errors: the pool's, or kCancelled when a signal came first.
Result<> prefault(PoolSet& pools, unsigned threads, int stop_descriptor,
                  const ServiceNotify& notify) {
  pools.start_prefault(threads);
  std::string shown;
  int rounds = 0;
  while (!pools.progress().is_over) {
    if (wait_for_stop(stop_descriptor, kPrefaultRoundMillis)) pools.stop_prefault();
    const std::string text = percent_text(pools.progress());
    if (text == shown) continue;  // no progress: the service manager's patience counts
    shown = text;
    notify.status("touching memory: " + text);
    notify.extend_timeout(kPrefaultExtend);
    if (rounds++ % 4 == 3) log::info("prefault", {{"progress", text}});
  }
  return pools.outcome();
}

AgentOptions agent_options(const WorkerConfig& config, const HostMemory& host,
                           const BootId& boot_id, const PoolSet& pools) {
  AgentOptions options;
  options.worker_name = config.name;
  options.node = config.node;
  options.boot_id = to_bytes(boot_id);
  options.request_token = to_bytes(random_id128());
  options.process = random_seed() | 1;  // zero would read as "left out"
  options.host_memory_bytes = host.usable_bytes();
  options.pools = pools.agent_pools();
  options.write_order = config.write_order;
  options.seed = random_seed();
  options.clients_max = config.clients_max;
  return options;
}

// Everything that runs once the pools are there. Members are destroyed from the last to the first.
class RunningWorker {
 public:
  RunningWorker(const WorkerConfig& config, const HostMemory& host, const BootId& boot_id,
                PoolSet& pools, LifeKeeper& keeper)
      : config_(config),
        pool_descriptors_(pools.descriptors()),
        host_(agent_options(config, host, boot_id, pools)),
        service_(service_options(config, pools), host_, keeper),
        link_(config.server, config.exposure, host_) {
    host_.set_perform([this](Action& action) { perform(action); });
  }

  Result<> start(LifeKeeper& keeper) {
    auto descriptors = DescriptorServer::start(
        config_.socket + ".fd", keeper, config_.clients_max * 2 + 16, [this](SessionId client) {
          host_.feed([&](Agent& agent, Time now) { agent.client_suspected(client, now); });
        });
    if (!descriptors) return tl::unexpected(descriptors.error());
    descriptors_ = std::move(*descriptors);
    service_.set_descriptors(descriptors_.get());
    if (config_.share_host_pools) start_sharing(keeper);
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    RpcListener listener;
    listener.name = "worker.socket";
    listener.address.kind = AddressKind::kUnix;
    listener.address.path = config_.socket;
    auto server = start_rpc_server(builder, {listener});
    if (!server) return tl::unexpected(server.error());
    server_ = std::move(*server);
    return start_http();
  }

  // Without it this worker serves its own engines all the same.
  void start_sharing(LifeKeeper& keeper) {
    NeighboursOptions options;
    options.directory = config_.runtime_directory;
    options.worker_name = config_.name;
    options.pool_descriptors = pool_descriptors_;
    auto neighbours = Neighbours::start(std::move(options), host_, keeper);
    if (!neighbours) {
      return log::warning("sharing_off", {{"message", neighbours.error().message}});
    }
    neighbours_ = std::move(*neighbours);
    service_.set_neighbours(neighbours_.get());
  }

  // Until a signal or a fatal refusal; returns the exit code.
  int loop(int stop_descriptor, const ServiceNotify& notify) {
    LogicalClock logical(Time{0}, kStepMax);
    int64_t watched_at = clock_.monotonic_millis();
    std::string stage;
    std::optional<Time> stop_by;
    while (true) {
      const bool is_asked = wait_for_stop(stop_descriptor, kRoundMillis);
      const int64_t millis = clock_.monotonic_millis();
      const Time now = logical.advance(millis);
      host_.tick(now);
      if (notify.watchdog_every() && millis - watched_at >= notify.watchdog_every()->millis) {
        watched_at = millis;
        notify.watchdog();
      }
      if (const auto error = fatal_error()) return report(*error);
      if (is_asked && !stop_by) {
        log::info("stopping", {{"worker", config_.name}});
        notify.stopping();
        host_.feed([](Agent& agent, Time at) { agent.stop(at); });
        stop_by = now + kStopWithin;
      }
      if (stop_by && (now >= *stop_by || host_.ask([](const Agent& a) { return a.is_idle(); }))) {
        return 0;
      }
      std::string present = host_.ask([](const Agent& a) { return std::string(a.stage_name()); });
      if (!stop_by && present != stage) {
        stage = std::move(present);
        notify.status(stage + " (" + config_.server.text() + ")");
      }
    }
  }

  void stop() {
    http_.reset();
    service_.close();
    if (server_.server) server_.shut_down(kShutdownWithin);
    link_.stop();
    if (neighbours_) neighbours_->stop();
    descriptors_.reset();
  }

 private:
  static EngineServiceOptions service_options(const WorkerConfig& config, PoolSet& pools) {
    EngineServiceOptions options;
    options.joins_max = config.clients_max * 2 + 16;
    options.pool_descriptors = pools.descriptors();
    options.publish = [&pools](std::span<const WrittenSpan> spans) { return pools.publish(spans); };
    return options;
  }

  Result<> start_http() {
    if (!config_.http) return {};
    add_worker_metrics(metrics_, host_);
    auto server = HttpServer::start(*config_.http, worker_pages(metrics_, host_), clock_);
    if (!server) return tl::unexpected(server.error());
    http_ = std::move(*server);
    log::info("http_listens", {{"address", http_->address().text()}});
    return {};
  }

  void perform(Action& action) {
    std::visit([this](auto& body) { perform_one(body); }, action);
  }
  template <class Body>
  void perform_one(Body& body) {
    if constexpr (std::is_same_v<Body, Note>) {
      log_note(body);
    } else if constexpr (std::is_same_v<Body, Fatal>) {
      const std::lock_guard lock(mutex_);
      if (!fatal_) fatal_ = body.error;
    } else if constexpr (std::is_same_v<Body, Answer> || std::is_same_v<Body, Welcome> ||
                         std::is_same_v<Body, Push> || std::is_same_v<Body, EndJoin> ||
                         std::is_same_v<Body, TestLife>) {
      service_.perform(body);
    } else if constexpr (std::is_same_v<Body, GrantImport> || std::is_same_v<Body, DropImport>) {
      service_.perform(body);
    } else if constexpr (std::is_same_v<Body, Introduce> || std::is_same_v<Body, LockExport> ||
                         std::is_same_v<Body, PassExport> || std::is_same_v<Body, DiscardLock>) {
      if (neighbours_) neighbours_->perform(body);
    } else {
      link_.perform(body);
    }
  }

  std::optional<Error> fatal_error() {
    const std::lock_guard lock(mutex_);
    return fatal_;
  }

  static int report(const Error& error) {
    log::error("worker_refused", {{"reason", error.reason}, {"message", error.message}});
    return error.reason == Reason::kNameInUse ? kExitNameInUse : kExitFailed;
  }

  const WorkerConfig& config_;
  const std::vector<int> pool_descriptors_;
  const SteadyClock clock_;
  std::mutex mutex_;
  std::optional<Error> fatal_;  // guarded by mutex_
  AgentHost host_;
  std::unique_ptr<Neighbours> neighbours_;
  EngineService service_;
  LinkClient link_;
  std::unique_ptr<DescriptorServer> descriptors_;
  RpcServer server_;
  MetricsRegistry metrics_;
  std::unique_ptr<HttpServer> http_;
};

int report_start(const Error& error) {
  log::error("start_failed", {{"reason", error.reason}, {"message", error.message}});
  return error.reason == Reason::kNameInUse       ? kExitNameInUse
         : error.reason == Reason::kInvalidConfig ? kExitBadConfig
                                                  : kExitFailed;
}

}  // namespace

int run_worker(const WorkerConfig& config, const HostMemory& host, int stop_descriptor) {
  log::set_level(config.log_level);
  const ServiceNotify notify = ServiceNotify::from_environment();
  const auto boot_id = read_boot_id();
  if (!boot_id) return report_start(boot_id.error());
  auto keeper = LifeKeeper::open(config.runtime_directory, config.name);
  if (!keeper) return report_start(keeper.error());
  const auto own_lock = take_own_lock(**keeper, config);
  if (!own_lock) return report_start(own_lock.error());
  const auto claim = claim_name(config.server.text(), config.node, config.name);
  if (!claim) return report_start(claim.error());
  const size_t leftovers = (*keeper)->remove_leftovers(config.runtime_directory);

  auto pools = PoolSet::map(config, host);
  if (!pools) return report_start(pools.error());
  if (const auto real = prefault(**pools, config.prefault_threads, stop_descriptor, notify);
      !real) {
    return real.error().reason == Reason::kCancelled ? 0 : report_start(real.error());
  }
  for (const std::string& warning : (*pools)->warnings()) {
    log::warning("pool_wish_refused", {{"message", warning}});
  }

  raise_open_files_limit();
  RunningWorker worker(config, host, *boot_id, **pools, **keeper);
  if (const auto started = worker.start(**keeper); !started) {
    worker.stop();
    return report_start(started.error());
  }
  log::info("worker_started", {{"worker", config.name},
                               {"node", config.node},
                               {"socket", config.socket},
                               {"server", config.server.text()},
                               {"leftover_life_files", leftovers}});
  notify.ready("pools are mapped; looking for berthd at " + config.server.text());
  const int code = worker.loop(stop_descriptor, notify);
  worker.stop();
  log::info("worker_stopped", {{"worker", config.name}, {"code", code}});
  return code;
}

}  // namespace berth::worker
