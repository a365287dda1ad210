#include "common/host_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "common/names.h"
#include "common/os_error.h"
#include "common/small_file.h"
#include "common/text.h"

namespace berth {
namespace {

std::optional<uint64_t> leading_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// "MemTotal:       24578972 kB" in bytes.
std::optional<uint64_t> meminfo_bytes(const std::string& meminfo, const std::string& field) {
  const size_t at = meminfo.find(field + ":");
  if (at == std::string::npos) return std::nullopt;
  const size_t digits = meminfo.find_first_of("0123456789", at + field.size());
  if (digits == std::string::npos) return std::nullopt;
  const auto kib = leading_number(std::string_view(meminfo).substr(digits));
  if (!kib) return std::nullopt;
  return *kib * 1024;
}

std::optional<uint64_t> limit_in(const std::string& file) {
  const auto text = read_small_file(file);
  return text ? leading_number(*text) : std::nullopt;  // v2 says "max" for none
}

// Walks from the process's own cgroup to the mount's root. In a container the path may name a group
// that is not visible here; then only the levels that are, count.
std::optional<uint64_t> lowest_limit(const std::string& mount, std::string path,
                                     const std::string& file) {
  std::optional<uint64_t> lowest;
  for (;;) {
    const auto limit = limit_in(mount + path + "/" + file);
    if (limit && (!lowest || *limit < *lowest)) lowest = limit;
    if (path.empty()) return lowest;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

// Lines of /proc/self/cgroup: "0::/user.slice" (v2), "9:memory:/user.slice" (v1).
std::optional<uint64_t> cgroup_memory_limit(const HostRoot& root) {
  const auto groups = read_small_file(root.proc + "/self/cgroup");
  if (!groups) return std::nullopt;
  std::optional<uint64_t> lowest;
  const auto take = [&](std::optional<uint64_t> limit) {
    if (limit && (!lowest || *limit < *lowest)) lowest = limit;
  };
  std::istringstream lines(*groups);
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") take(lowest_limit(root.cgroup, path, "memory.max"));
    if (controllers.find(",memory,") != std::string::npos)
      take(lowest_limit(root.cgroup + "/memory", path, "memory.limit_in_bytes"));
  }
  return lowest;
}

}  // namespace

Result<BootId> read_boot_id(const HostRoot& root) {
  auto text = read_small_file(root.proc + "/sys/kernel/random/boot_id");
  if (!text) return tl::unexpected(text.error());
  text->resize(std::min(text->find('\n'), text->size()));
  return id128_from_hex("boot id", *text);
}

Result<std::string> read_host_name() {
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) != 0) return refuse_os("read the host name");
  std::string text(name);
  text.resize(std::min(text.size(), kNameLengthMax));
  if (const auto valid = validate_name("host name", text); !valid)
    return tl::unexpected(valid.error());
  return text;
}

uint64_t HostMemory::usable_bytes() const {
  return std::min(total_bytes, cgroup_limit_bytes.value_or(total_bytes));
}

Result<HostMemory> read_host_memory(const HostRoot& root) {
  const auto meminfo = read_small_file(root.proc + "/meminfo");
  if (!meminfo) return tl::unexpected(meminfo.error());
  const auto total = meminfo_bytes(*meminfo, "MemTotal");
  const auto available = meminfo_bytes(*meminfo, "MemAvailable");
  if (!total || !available)
    return refuse(Reason::kIoError, root.proc + "/meminfo lacks MemTotal or MemAvailable");
  HostMemory memory{*total, *available, cgroup_memory_limit(root)};
  // v1 writes "unlimited" as a number beyond any memory.
  if (memory.cgroup_limit_bytes && *memory.cgroup_limit_bytes >= *total)
    memory.cgroup_limit_bytes.reset();
  return memory;
}

std::optional<uint64_t> locked_memory_limit_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::nullopt;
  return limit.rlim_cur;
}

uint64_t raise_open_files_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace berth
