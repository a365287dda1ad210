// The HTTP pages: /metrics, /healthz (the process lives) and /readyz (it serves, or why not).
//
// They answer from the first moment on, so that a port that is taken is found before the database
// is opened; /metrics has something to show once every metric is declared.
#pragma once

#include <atomic>
#include <memory>

#include "common/http_server.h"
#include "common/metrics_registry.h"
#include "server/rpc/server_health.h"

namespace berth {

class HttpEndpoint {
 public:
  // Both outlive it.
  HttpEndpoint(const MetricsRegistry& registry, const rpc::ServerHealth& health)
      : registry_(registry), health_(health) {}

  // Errors: kIoError naming the address.
  Result<> start(const Address& address, const Clock& clock);
  // Every metric is declared, and what the collectors read is there.
  void show_metrics() { has_metrics_ = true; }
  void stop() { server_.reset(); }

  // With the real port; only after start().
  const Address& address() const { return server_->address(); }

 private:
  HttpResponse metrics_page() const;
  HttpResponse ready_page() const;

  const MetricsRegistry& registry_;
  const rpc::ServerHealth& health_;
  std::atomic<bool> has_metrics_{false};
  std::unique_ptr<HttpServer> server_;
};

}  // namespace berth
