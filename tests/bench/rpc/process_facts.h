// What the kernel says of a process and of this machine: CPU time and memory of the servers, and
// what a result must name so that somebody else can judge it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace berth::bench {

// CPU time that all threads of a process have taken so far; 0: this process. Zero when it is gone.
double cpu_seconds(pid_t pid);
// Its resident memory.
uint64_t resident_bytes_of(pid_t pid);

struct MachineFacts {
  std::string cpu;
  uint32_t cores = 0;
  std::string kernel;
  uint64_t memory_bytes = 0;
  double load_average = 0;  // of the last minute: figures beside a busy neighbour are provisional
};
MachineFacts machine_facts();

}  // namespace berth::bench
