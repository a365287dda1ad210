// The configuration files that the tests write: what a test wants changed, as fields with short
// values for tests; everything else keeps the daemon's default. The one place that knows key names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/time.h"

namespace berth::testing {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kKiB = uint64_t{1} << 10;

enum class Http : uint8_t { kOff, kAnyPort };

struct ServerTuning {
  Duration heartbeat_every = milliseconds(200);
  Duration heartbeat_deadline = seconds(3);
  Duration write_within = seconds(30);
  Duration lease_ttl = seconds(60);
  Duration reclaim_again = milliseconds(500);
  uint64_t batch_items_max = 4096;
  Http http = Http::kOff;
  std::string http_listen = {};  // instead of any port
  std::string durability = "interval";
  std::string state_directory = {};  // empty: in the cluster's directory
  uint64_t memtable_bytes = 32 * kMiB;
  Duration reopen_every = seconds(1);
  uint64_t slice_records = 256;
};

struct WorkerTuning {
  std::string name = "w0";
  std::string node = "node-a";
  std::string scope = "host";
  uint64_t pool_bytes = 64 * kMiB;
  uint64_t page_bytes = 64 * kKiB;
  std::string pool = {};     // its name; empty: the worker's with "-cpu"
  std::string engine = {};   // PROCESS scope: whom it is private to
  std::string runtime = {};  // runtime directory; empty: the cluster's
  Http http = Http::kOff;
  std::string server = {};  // its address; empty: the cluster's

  std::string pool_name() const { return pool.empty() ? name + "-cpu" : pool; }
};

// `directory` is the cluster's: state in "<directory>/state", sockets beside it.
std::string server_address(const std::string& directory);
std::string server_state(const std::string& directory, const ServerTuning& tuning);
std::string server_config(const std::string& directory, const ServerTuning& tuning);
std::string worker_socket(const std::string& directory, const WorkerTuning& tuning);
std::string worker_runtime(const std::string& directory, const WorkerTuning& tuning);
std::string worker_config(const std::string& directory, const WorkerTuning& tuning);

}  // namespace berth::testing
