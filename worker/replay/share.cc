#include "worker/replay/share.h"

#include <map>
#include <string>

#include "common/clock.h"
#include "worker/replay/client_cache.h"
#include "worker/replay/engine.h"

namespace berth::replay {
namespace {

using Skips = std::map<std::string, uint64_t>;

ClientCacheOptions cache_options(const ReplayOptions& options, uint32_t engine) {
  ClientCacheOptions cache;
  cache.socket = options.worker_sockets[engine % options.worker_sockets.size()];
  cache.engine_id = "replay-" + std::to_string(engine);
  cache.name_space = options.name_space;
  cache.block_bytes = options.block_bytes;
  cache.shards = options.shards;
  cache.parts = options.parts;
  cache.probe_deadline = options.probe_deadline;
  return cache;
}

}  // namespace

Result<Counts> replay_share(const ReplayOptions& options, const std::vector<Request>& requests,
                            const std::vector<uint32_t>& engine_of, uint32_t engine,
                            Progress& progress) {
  auto cache = ClientCache::open(cache_options(options, engine));
  if (!cache) return tl::unexpected(cache.error());
  const SteadyClock clock;
  Engine served_by(**cache, clock);
  const int64_t begun = clock.monotonic_millis();
  Skips in_warm_up;
  for (size_t i = 0; i < requests.size() && !progress.is_stopped(); ++i) {
    if (engine_of[i] != engine) continue;
    if (options.speed > 0) {
      const auto due =
          static_cast<int64_t>(static_cast<double>(requests[i].timestamp_ms) / options.speed);
      const int64_t early = begun + due - clock.monotonic_millis();
      if (early > 0 && progress.wait(milliseconds(early))) break;
    }
    const uint64_t outages = served_by.counts().misses_unavailable;
    served_by.serve(requests[i]);
    progress.add(1);
    if (i < options.warm_up) in_warm_up = served_by.counts().skipped_by_reason;
    if (served_by.counts().misses_unavailable != outages && progress.wait(options.outage_pause))
      break;
  }
  Counts counts = served_by.counts();
  counts.rejoins = (*cache)->rejoins();
  for (const auto& [reason, count] : counts.skipped_by_reason) {
    const uint64_t late = count - in_warm_up[reason];
    if (late > 0) counts.skipped_after_warm_up_by_reason[reason] = late;
    counts.skipped_after_warm_up += late;
  }
  return counts;
}

}  // namespace berth::replay
