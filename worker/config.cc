#include "worker/config.h"

#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "common/config.h"
#include "common/names.h"
#include "common/units.h"
#include "common/unix_socket.h"

namespace berth::worker {
namespace {

constexpr std::string_view kDescriptorSuffix = ".fd";
constexpr const char* kWishes = "\"off\", \"preferred\" or \"required\"";

bool is_directory(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// Anybody could put his own socket or life file in our place.
bool is_open_to_all(const std::string& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 && (facts.st_mode & S_IWOTH) != 0 &&
         (facts.st_mode & S_ISVTX) == 0;
}

void check_name(ConfigTable& table, std::string_view key, const std::string& value) {
  if (!validate_name(key, value)) {
    table.refuse_key(key, "accepted: 1 to 64 of A-Z a-z 0-9 . _ -, not starting with '.' or '-'");
  }
}

void check_directory(ConfigTable& table, std::string_view key, const std::string& path) {
  if (!is_directory(path)) {
    table.refuse_key(key, path + " is not a directory; accepted: one that exists");
  } else if (is_open_to_all(path)) {
    table.refuse_key(key, path +
                              " can be written by everybody; accepted: a directory of this "
                              "user or group, or one with the sticky bit");
  }
}

void read_server(ConfigTable& table, WorkerConfig& config) {
  const std::string text = table.string("server", "127.0.0.1:7420");
  if (table.boolean("insecure", false)) config.exposure = Exposure::kInsecureAllowed;
  const auto address = parse_address("server", text);
  if (!address) {
    table.refuse_key("server", "accepted: HOST:PORT, [IPV6]:PORT or unix:/PATH");
  } else if (!check_exposure("server", *address, config.exposure)) {
    table.refuse_key("server",
                     "plain TCP to another host; accepted: a loopback address, unix:/PATH, or "
                     "insecure = true");
  } else {
    config.server = *address;
  }
}

void read_socket(ConfigTable& table, WorkerConfig& config) {
  config.runtime_directory = table.string("runtime_directory", "/run/berth");
  check_directory(table, "runtime_directory", config.runtime_directory);
  config.socket = table.string("socket", "/run/berth/" + config.name + ".sock");
  const size_t length_max = kUnixPathLengthMax - kDescriptorSuffix.size();
  if (config.socket.empty() || config.socket[0] != '/' || config.socket.size() > length_max) {
    table.refuse_key("socket", "accepted: an absolute path of at most " +
                                   std::to_string(length_max) + " characters");
    return;
  }
  check_directory(table, "socket", std::filesystem::path(config.socket).parent_path().string());
}

void read_worker(ConfigTable table, WorkerConfig& config) {
  config.name = table.required_string("name");
  if (!config.name.empty() || table.has("name")) check_name(table, "name", config.name);
  config.node = table.string("node", read_host_name().value_or("localhost"));
  check_name(table, "node", config.node);
  read_server(table, config);
  read_socket(table, config);
  const std::string http = table.string("http", "off");
  if (http != "off") {
    const auto address = parse_address("http", http);
    if (address && address->kind == AddressKind::kTcp) {
      config.http = *address;
    } else {
      table.refuse_key("http", "accepted: HOST:PORT, [IPV6]:PORT, or \"off\"");
    }
  }
  config.clients_max = static_cast<size_t>(table.integer("clients_max", 64, {1, 4096}));
  config.share_host_pools = table.boolean("share_host_pools", true);
  config.prefault_threads = static_cast<unsigned>(table.integer("prefault_threads", 2, {1, 256}));
  const std::string level =
      table.choice("log_level", "info", {"debug", "info", "warning", "error"});
  config.log_level = log::parse_level("log_level", level).value_or(log::Level::kInfo);
  config.write_order = table.strings("write_order", {});
}

pool::Wish read_wish(ConfigTable& table, std::string_view key) {
  const std::string word = table.choice(key, "off", {"off", "preferred", "required"});
  if (word == "preferred") return pool::Wish::kPreferred;
  return word == "required" ? pool::Wish::kRequired : pool::Wish::kOff;
}

void read_sizes(ConfigTable& table, const HostMemory& host, pool::CpuPoolConfig& pool) {
  pool.page_bytes =
      table.size("page", uint64_t{64} << 10, {pool::kPoolPageBytesMin, pool::kPoolPageBytesMax});
  if ((pool.page_bytes & (pool.page_bytes - 1)) != 0) {
    table.refuse_key("page", "is not a power of two; accepted: a power of two, 4KiB to 1GiB");
    pool.page_bytes = uint64_t{64} << 10;
  }
  pool.capacity_bytes = table.required_size("capacity", {pool.page_bytes, kAnySize.max});
  pool.budget_bytes = table.size("budget", pool.capacity_bytes, {1, kAnySize.max});
  const bool is_given = table.has("capacity");
  if (is_given && pool.capacity_bytes % pool.page_bytes != 0) {
    table.refuse_key("capacity",
                     "is not a multiple of page; accepted: one or more whole pages of " +
                         exact_size(pool.page_bytes) + ", e.g. \"8GiB\"");
  } else if (host.usable_bytes() > 0 && pool.capacity_bytes > host.usable_bytes()) {
    table.refuse_key("capacity", "this host's memory is " + format_size(host.usable_bytes()) +
                                     "; accepted: at most that, e.g. \"8GiB\"");
  }
  if (pool.budget_bytes > pool.capacity_bytes) {
    table.refuse_key("budget",
                     "is above capacity; accepted: at most " + exact_size(pool.capacity_bytes));
  }
}

pool::CpuPoolConfig read_pool(ConfigTable table, const HostMemory& host) {
  pool::CpuPoolConfig pool;
  pool.name = table.required_string("name");
  if (!pool.name.empty() || table.has("name")) check_name(table, "name", pool.name);
  table.choice("medium", "cpu", {"cpu"});
  pool.scope = table.choice("scope", "host", {"host", "process"}) == "process"
                   ? pool::Scope::kProcess
                   : pool::Scope::kHost;
  pool.engine = table.string("engine", "");
  if (!pool.engine.empty()) check_name(table, "engine", pool.engine);
  if (!pool.engine.empty() && pool.scope != pool::Scope::kProcess) {
    table.refuse_key("engine", "a host pool is nobody's own; accepted: with scope = \"process\"");
  }
  read_sizes(table, host, pool);
  pool.huge_pages = read_wish(table, "huge_pages");
  pool.huge_page_bytes = table.size("huge_page", uint64_t{2} << 20);
  if (pool.huge_page_bytes != uint64_t{2} << 20 && pool.huge_page_bytes != uint64_t{1} << 30) {
    table.refuse_key("huge_page", "accepted: \"2MiB\" or \"1GiB\"");
  }
  pool.lock_memory = read_wish(table, "mlock");
  pool.numa_bind = read_wish(table, "numa");
  pool.numa_node = static_cast<int>(table.integer("numa_node", 0, {0, pool::kNumaNodeMax}));
  if (table.has("numa_node") && pool.numa_bind == pool::Wish::kOff) {
    table.refuse_key("numa_node", std::string("has no effect with numa = \"off\"; accepted for "
                                              "numa: ") +
                                      kWishes);
  }
  return pool;
}

void check_together(ConfigTable root, std::vector<ConfigTable>& tables, const HostMemory& host,
                    const WorkerConfig& config) {
  std::set<std::string> names;
  uint64_t total = 0;
  for (size_t i = 0; i < config.pools.size(); ++i) {
    const pool::CpuPoolConfig& pool = config.pools[i];
    if (!names.insert(pool.name).second && !pool.name.empty()) {
      tables[i].refuse_key("name", "another pool has this name; accepted: a name of its own");
    }
    const bool fits_alone = host.usable_bytes() == 0 || pool.capacity_bytes <= host.usable_bytes();
    if (fits_alone) total += pool.capacity_bytes;
    if (fits_alone && host.usable_bytes() > 0 && total > host.usable_bytes()) {
      tables[i].refuse_key("capacity", "the pools together take " + format_size(total) +
                                           ", this host's memory is " +
                                           format_size(host.usable_bytes()));
    }
  }
  ConfigTable worker = root.table("worker");
  for (const std::string& name : config.write_order) {
    if (!names.count(name)) {
      worker.refuse_key("write_order", name + " is not a pool; accepted: names of [[pool]]s");
    }
  }
}

}  // namespace

Result<WorkerConfig> load_worker_config(const std::string& path, const HostMemory& host) {
  const auto document = Config::load(path);
  if (!document) return tl::unexpected(document.error());
  ConfigTable root = document->root();
  WorkerConfig config;
  read_worker(root.table("worker"), config);
  std::vector<ConfigTable> tables = root.tables("pool", kPoolsMax);
  for (ConfigTable& table : tables) config.pools.push_back(read_pool(table, host));
  check_together(root, tables, host, config);
  if (const auto good = document->finish(); !good) return tl::unexpected(good.error());
  if (config.pools.empty()) {
    return refuse(Reason::kInvalidConfig,
                  path + ": pool is missing; accepted: at least one [[pool]] table");
  }
  config.description = document->describe();
  return config;
}

}  // namespace berth::worker
