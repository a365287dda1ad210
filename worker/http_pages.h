// The worker's HTTP pages: /metrics (what its pools hold now), /healthz (the process lives) and
// /readyz (it is attached to berthd, or how far it is).
#pragma once

#include "common/http_server.h"
#include "common/metrics_registry.h"
#include "worker/session/host.h"

namespace berth::worker {

// Both read the host whenever they are asked: it outlives the registry and the server.
void add_worker_metrics(MetricsRegistry& registry, const AgentHost& host);
HttpRoutes worker_pages(const MetricsRegistry& registry, const AgentHost& host);

}  // namespace berth::worker
