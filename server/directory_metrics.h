// What the directory and the sequencer are at the moment of a scrape. Computed then and never kept,
// so a gauge cannot drift from what it describes. Labels are small closed sets: medium, state,
// role.
#pragma once

#include "common/metrics_registry.h"
#include "server/rpc/server_health.h"
#include "server/sequencer/sequencer.h"

namespace berth {

// Adds the collectors. What they read must outlive the last scrape.
void add_directory_metrics(MetricsRegistry& registry, const Sequencer& sequencer,
                           const rpc::ServerHealth& health);

}  // namespace berth
