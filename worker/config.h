// The configuration of one berth-worker: read from TOML, checked completely, constant while it
// runs. deploy/berth-worker.toml explains every key.
#pragma once

#include <string>
#include <vector>

#include "common/address.h"
#include "common/error.h"
#include "common/host_facts.h"
#include "common/log.h"
#include "worker/pool/cpu_pool.h"

namespace berth::worker {

// Descriptors of one client travel in one message.
inline constexpr size_t kPoolsMax = 32;

struct WorkerConfig {
  std::string name;
  std::string node;
  Address server;
  Exposure exposure = Exposure::kLocalOnly;
  std::string socket;             // of engines; descriptors on "<socket>.fd"
  std::string runtime_directory;  // life files
  std::optional<Address> http;
  size_t clients_max = 64;
  bool share_host_pools = true;  // with the other workers of this runtime directory
  log::Level log_level = log::Level::kInfo;
  std::vector<std::string> write_order;
  unsigned prefault_threads = 2;
  std::vector<pool::CpuPoolConfig> pools;
  std::string description;  // the values in force, for --check-config
};

// Errors: kInvalidConfig with every mistake, one a line, as "FILE:LINE: key = value: what is wrong;
// what is accepted". `host` bounds the pools.
Result<WorkerConfig> load_worker_config(const std::string& path, const HostMemory& host);

}  // namespace berth::worker
