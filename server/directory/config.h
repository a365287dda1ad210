// The bounds and intervals that the directory decides by. Filled from berthd's configuration;
// constant while it runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/time.h"
#include "server/directory/records.h"

namespace berth {

struct DirectoryConfig {
  Duration heartbeat_interval = seconds(1);
  Duration heartbeat_deadline = seconds(10);  // silence after which a worker's pools are hidden
  Duration write_within_default = seconds(30);
  Duration write_within_max = seconds(600);
  Duration lease_ttl_default = seconds(60);
  Duration lease_ttl_max = seconds(3600);
  Duration reclaim_again =
      seconds(5);  // an unacknowledged reclaim is asked for again after this long

  uint32_t batch_items_max = 4096;   // items of one command
  uint32_t operations_max = 1024;    // kept answers per session
  uint32_t reservations_max = 1024;  // open reservations per session
  uint32_t leases_max = 4096;        // per session
  uint32_t sessions_max = 10'000;
  uint32_t pools_max = 4096;
  uint32_t namespaces_max = 1024;
  uint32_t importers_max = 64;  // exports of one pool, those that are not proven over included
  uint32_t imports_max = 256;   // pools exported to one worker
  uint64_t object_bytes_max = uint64_t{1} << 30;

  // Records that one slice of a job, or one tick, may change: bounds how long other calls wait for
  // it.
  uint32_t slice_records = 256;

  EvictionSetting eviction;  // until an operator sets another
  Duration pin_ttl_default = seconds(3600);
  Duration pin_ttl_max = seconds(30 * 24 * 3600);
  uint32_t pins_max = 65'536;

  uint64_t host_budget_bytes = 0;  // 0: the host's memory, when its worker reported it
  std::map<std::string, uint64_t> host_budget_by_node;
  uint64_t namespace_quota_bytes = 0;  // of a namespace that was just opened; 0: none
};

// What is in force over `world`, a directory or a draft.
template <class World>
const EvictionSetting& eviction_in_force(const World& world, const DirectoryConfig& config) {
  const EvictionSetting* set = world.template find<EvictionSetting>({});
  return set ? *set : config.eviction;
}

}  // namespace berth
