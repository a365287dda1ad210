#include "tests/bench/rpc/process_facts.h"

#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <thread>

#include "common/host_facts.h"
#include "common/small_file.h"

namespace berth::bench {
namespace {

std::string cpu_model() {
  std::istringstream facts(read_small_file("/proc/cpuinfo").value_or(""));
  for (std::string line; std::getline(facts, line);)
    if (line.starts_with("model name"))
      if (const size_t at = line.find(": "); at != std::string::npos) return line.substr(at + 2);
  return "unknown";
}

}  // namespace

double cpu_seconds(pid_t pid) {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  if (pid != 0 && ::clock_getcpuclockid(pid, &clock) != 0) return 0;
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

uint64_t resident_bytes_of(pid_t pid) {
  // "size resident shared ...", in pages.
  std::istringstream facts(read_small_file("/proc/" + std::to_string(pid) + "/statm").value_or(""));
  uint64_t size = 0;
  uint64_t resident = 0;
  facts >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

MachineFacts machine_facts() {
  MachineFacts facts;
  facts.cpu = cpu_model();
  facts.cores = std::thread::hardware_concurrency();
  utsname name{};
  if (::uname(&name) == 0) facts.kernel = name.release;
  if (const auto memory = read_host_memory()) facts.memory_bytes = memory->total_bytes;
  double loads[1] = {};
  if (::getloadavg(loads, 1) == 1) facts.load_average = loads[0];
  return facts;
}

}  // namespace berth::bench
