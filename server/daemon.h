// berthd as one thing: the order in which its parts start and stop, and what it tells the service
// manager meanwhile.
//
//   start   HTTP (a taken port is found first) ─▶ store ─▶ sequencer (reads it) ─▶ gRPC ─▶ READY
//   run     until a stop signal; WATCHDOG only while the sequencer turns
//   stop    STOPPING ─▶ streams and calls end ─▶ sequencer, fsync ─▶ HTTP, all within kStopWithin
//
// Main's thread only.
#pragma once

#include <memory>

#include "common/clock.h"
#include "common/metrics_registry.h"
#include "common/service_notify.h"
#include "server/config.h"
#include "server/event_counter.h"
#include "server/http_endpoint.h"
#include "server/rpc/rpc_endpoint.h"

namespace berth {

// What a service manager waits for is longer. When even this is over, the process ends the hard
// way, which loses nothing that was acknowledged.
inline constexpr Duration kStopWithin = seconds(9);
// Of it: how long calls may take to finish.
inline constexpr Duration kCallsFinishWithin = seconds(3);

class Daemon {
 public:
  // `stop_signals` is what block_stop_signals() returned; it and `notify` outlive the daemon.
  Daemon(ServerConfig config, const ServiceNotify& notify, int stop_signals);
  ~Daemon();

  // Errors: kInvalidConfig (paths, addresses), kIoError, kNameInUse, store_*.
  Result<> start();
  // Until SIGTERM or SIGINT.
  void run();
  void stop();

  // With the real port; only while it runs with HTTP on.
  const Address& http_address() const { return http_.address(); }

 private:
  Result<std::unique_ptr<Store>> open_store() const;
  void on_progress(uint64_t records);
  Result<> start_http();
  Result<> start_rpc();
  // Whether the daemon has to stop.
  bool is_stop_asked() const;
  void tell_health();
  void feed_watchdog();

  const ServerConfig config_;
  const ServiceNotify& notify_;
  const int stop_signals_;
  const SteadyClock clock_;
  MetricsRegistry registry_;
  rpc::ServerHealth health_;
  HttpEndpoint http_;
  std::unique_ptr<Sequencer> sequencer_;
  std::shared_ptr<EventCounter> event_counter_;
  std::unique_ptr<rpc::RpcEndpoint> rpc_;

  int64_t progress_told_millis_ = 0;
  uint64_t turns_seen_ = 0;
  v1::Health health_told_ = v1::HEALTH_UNSPECIFIED;
};

}  // namespace berth
