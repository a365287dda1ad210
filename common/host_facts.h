// Facts about the machine and this process's limits, as the kernel states them. Read at start,
// reported in logs, and the reason for refusing a pool that cannot fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/error.h"
#include "common/ids.h"

namespace berth {

// Where the kernel's files are; tests point it elsewhere.
struct HostRoot {
  std::string proc = "/proc";
  std::string cgroup = "/sys/fs/cgroup";
};

// New at every boot of the kernel: another boot id proves that every earlier process is gone.
Result<BootId> read_boot_id(const HostRoot& root = {});

// The host name, cut to what validate_name() accepts; the default of a worker's node.
Result<std::string> read_host_name();

struct HostMemory {
  uint64_t total_bytes = 0;      // MemTotal
  uint64_t available_bytes = 0;  // MemAvailable
  // The lowest limit of this process's cgroup and those above it (v1 and v2); nothing when
  // unlimited.
  std::optional<uint64_t> cgroup_limit_bytes;

  // What this process could ever have: the lower of total and limit.
  uint64_t usable_bytes() const;
};
Result<HostMemory> read_host_memory(const HostRoot& root = {});

// RLIMIT_MEMLOCK: how much this process may pin. Nothing when unlimited.
std::optional<uint64_t> locked_memory_limit_bytes();

// Raises the soft limit of open files to the hard one; returns what is in force then.
uint64_t raise_open_files_limit();

}  // namespace berth
