#include "server/config.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/names.h"
#include "common/text.h"

namespace berth {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr size_t kNodeBudgetsMax = 4096;
constexpr size_t kListenersMax = 8;
// Three may be lost before a worker is taken for silent.
constexpr int64_t kHeartbeatsPerDeadline = 3;

constexpr Range<Duration> kTenMinutes{milliseconds(1), seconds(600)};
constexpr Range<Duration> kOneDay{milliseconds(1), seconds(24 * 3600)};

uint32_t count(ConfigTable& table, std::string_view key, uint32_t fallback, Range<int64_t> range) {
  return static_cast<uint32_t>(table.integer(key, fallback, range));
}

// "what is wrong; accepted", of a message that begins with "name = value: ".
std::string without_name(const std::string& message) {
  const size_t colon = message.find("\": ");
  return colon == std::string::npos ? message : message.substr(colon + 3);
}

void read_listeners(ConfigTable& table, const ServerOverrides& overrides, ServerConfig& config) {
  const auto texts = table.strings("listen", {"127.0.0.1:7420"});
  const bool insecure = table.boolean("insecure", false) || overrides.insecure;
  if (texts.empty() || texts.size() > kListenersMax)
    table.refuse_key("listen", "accepted: 1 to " + std::to_string(kListenersMax) + " addresses");
  std::set<std::string> seen;
  for (const std::string& text : texts) {
    const auto address = parse_address("server.listen", text);
    if (!address) {
      table.refuse_key("listen", quote(text) + ": " + without_name(address.error().message));
      continue;
    }
    RpcListener listener;
    listener.name = "server.listen";
    listener.address = *address;
    listener.exposure = insecure ? Exposure::kInsecureAllowed : Exposure::kLocalOnly;
    if (const auto safe = check_exposure(listener.name, *address, listener.exposure); !safe)
      table.refuse_key("listen", quote(text) +
                                     ": plain TCP that other hosts can reach; accepted: a "
                                     "loopback address, unix:/PATH, or insecure = true");
    if (!seen.insert(address->text()).second)
      table.refuse_key("listen", quote(text) + ": is named twice");
    config.listeners.push_back(std::move(listener));
  }
}

void read_http(ConfigTable& table, ServerConfig& config) {
  const std::string text = table.string("http", "127.0.0.1:7421");
  if (text == "off") return;
  const auto address = parse_address("server.http", text);
  if (address && address->kind == AddressKind::kTcp)
    config.http = *address;
  else
    table.refuse_key("http", "accepted: HOST:PORT, [IPV6]:PORT, or \"off\"");
}

void read_server(ConfigTable table, const ServerOverrides& overrides, ServerConfig& config) {
  read_listeners(table, overrides, config);
  read_http(table, config);
  const std::string& given = overrides.state_directory;
  config.state_directory =
      table.string("state_directory", given.empty() ? kStateDirectoryDefault : given);
  if (config.state_directory.empty() || config.state_directory[0] != '/')
    table.refuse_key("state_directory", "accepted: an absolute path");
  const std::string level =
      table.choice("log_level", "info", {"debug", "info", "warning", "error"});
  config.log_level = log::parse_level("server.log_level", level).value_or(log::Level::kInfo);
}

void read_store(ConfigTable table, ServerConfig& config) {
  static const std::map<std::string, Durability> kModes{{"sync", Durability::kSync},
                                                        {"interval", Durability::kInterval},
                                                        {"none", Durability::kNone}};
  SequencerConfig& sequencer = config.sequencer;
  sequencer.durability =
      kModes.at(table.choice("durability", "interval", {"sync", "interval", "none"}));
  sequencer.flush_interval =
      table.duration("flush_interval", sequencer.flush_interval, {milliseconds(1), seconds(60)});
  sequencer.reopen_interval = table.duration("reopen_interval", sequencer.reopen_interval,
                                             {milliseconds(10), seconds(600)});
  config.memtable_bytes = table.size("memtable", 32 * kMiB, {kMiB, 16 * kGiB});
  config.open_files_max = count(table, "open_files_max", 0, {0, 1'000'000});
}

void read_timing(ConfigTable table, SequencerConfig& sequencer) {
  DirectoryConfig& directory = sequencer.directory;
  const Duration interval = directory.heartbeat_interval =
      table.duration("heartbeat_interval", directory.heartbeat_interval, kTenMinutes);
  const Duration deadline = directory.heartbeat_deadline =
      table.duration("heartbeat_deadline", directory.heartbeat_deadline, kOneDay);
  if (interval * kHeartbeatsPerDeadline > deadline)
    table.refuse_key("heartbeat_deadline", "accepted: at least three times heartbeat_interval");
  directory.write_within_max =
      table.duration("write_deadline_max", directory.write_within_max, kOneDay);
  directory.write_within_default =
      table.duration("write_deadline", directory.write_within_default, kOneDay);
  if (directory.write_within_default > directory.write_within_max)
    table.refuse_key("write_deadline", "accepted: at most write_deadline_max");
  directory.lease_ttl_max = table.duration("lease_ttl_max", directory.lease_ttl_max, kOneDay);
  directory.lease_ttl_default = table.duration("lease_ttl", directory.lease_ttl_default, kOneDay);
  if (directory.lease_ttl_default > directory.lease_ttl_max)
    table.refuse_key("lease_ttl", "accepted: at most lease_ttl_max");
  directory.reclaim_again = table.duration("reclaim_again", directory.reclaim_again, kOneDay);
  // Short deadlines need a fine clock: the defaults follow them.
  sequencer.tick_interval = table.duration(
      "tick_interval", std::min(sequencer.tick_interval, interval), {milliseconds(1), seconds(10)});
  sequencer.max_step = table.duration(
      "step_max", std::min(sequencer.max_step, Duration{std::max<int64_t>(deadline.millis / 4, 1)}),
      {milliseconds(1), seconds(60)});
  if (sequencer.max_step < sequencer.tick_interval)
    table.refuse_key("step_max", "accepted: at least tick_interval");
  if (sequencer.max_step * 2 > deadline)
    table.refuse_key("step_max", "accepted: at most half of heartbeat_deadline");
}

void read_limits(ConfigTable table, ServerConfig& config) {
  constexpr Range<int64_t> kMillion{1, 1'000'000};
  constexpr Range<int64_t> kBatch{1, 65'536};
  DirectoryConfig& directory = config.sequencer.directory;
  directory.batch_items_max = count(table, "batch_items_max", directory.batch_items_max, kBatch);
  directory.object_bytes_max =
      table.size("object_bytes_max", directory.object_bytes_max, {1, uint64_t{1} << 40});
  directory.operations_max = count(table, "operations_max", directory.operations_max, kMillion);
  directory.reservations_max =
      count(table, "reservations_max", directory.reservations_max, kMillion);
  directory.leases_max = count(table, "leases_max", directory.leases_max, kMillion);
  directory.sessions_max = count(table, "sessions_max", directory.sessions_max, kMillion);
  directory.pools_max = count(table, "pools_max", directory.pools_max, kMillion);
  directory.namespaces_max = count(table, "namespaces_max", directory.namespaces_max, kMillion);
  directory.importers_max = count(table, "importers_max", directory.importers_max, {1, 4096});
  directory.imports_max = count(table, "imports_max", directory.imports_max, {1, 4096});
  directory.slice_records = count(table, "slice_records", directory.slice_records, kBatch);

  SequencerConfig& sequencer = config.sequencer;
  sequencer.queue_commands_max =
      count(table, "queue_commands_max", sequencer.queue_commands_max, kMillion);
  sequencer.batch_commands_max =
      count(table, "batch_commands_max", sequencer.batch_commands_max, kBatch);
  sequencer.batch_records_max =
      count(table, "batch_records_max", sequencer.batch_records_max, kMillion);
  sequencer.events_max = count(table, "events_max", sequencer.events_max, kMillion);
  // Searched as a whole for each Explain.
  sequencer.retired_history_max =
      count(table, "retired_history_max", sequencer.retired_history_max, {0, 262'144});

  rpc::RpcConfig& rpc = config.rpc;
  rpc.streams_max = count(table, "streams_max", rpc.streams_max, kMillion);
  rpc.link_requests_max = count(table, "link_requests_max", rpc.link_requests_max, kMillion);
  rpc.link_messages_max = count(table, "link_messages_max", rpc.link_messages_max, kMillion);
  if (rpc.link_messages_max <= rpc.link_requests_max)
    table.refuse_key("link_messages_max", "accepted: more than link_requests_max");
}

void read_eviction(ConfigTable table, SequencerConfig& sequencer) {
  EvictionSetting& setting = sequencer.directory.eviction;
  setting.kind = *policy::parse_eviction_kind(
      table.choice("policy", "adaptive", {"adaptive", "lru", "s3fifo", "lfu_da"}));
  const auto percent = [&](std::string_view key, uint32_t fallback, int64_t most) {
    return static_cast<uint32_t>(table.integer(key, fallback, {1, most})) * 10;
  };
  setting.high_permille = percent("high_watermark_percent", setting.high_permille / 10, 100);
  setting.low_permille = percent("low_watermark_percent", setting.low_permille / 10, 99);
  if (setting.low_permille >= setting.high_permille)
    table.refuse_key("low_watermark_percent", "accepted: less than high_watermark_percent");
  sequencer.evictor.slice_replicas =
      count(table, "slice_replicas", sequencer.evictor.slice_replicas, {1, 65'536});
  sequencer.evictor.retry =
      table.duration("retry_interval", sequencer.evictor.retry, {milliseconds(1), seconds(600)});
  DirectoryConfig& directory = sequencer.directory;
  directory.pins_max = count(table, "pins_max", directory.pins_max, {0, 1'000'000});
  constexpr Range<Duration> kYear{milliseconds(1), seconds(366 * 24 * 3600)};
  directory.pin_ttl_max = table.duration("pin_ttl_max", directory.pin_ttl_max, kYear);
  directory.pin_ttl_default = table.duration("pin_ttl", directory.pin_ttl_default, kYear);
  if (directory.pin_ttl_default > directory.pin_ttl_max)
    table.refuse_key("pin_ttl", "accepted: at most pin_ttl_max");
}

void read_budget(ConfigTable table, DirectoryConfig& directory) {
  directory.host_budget_bytes = table.size("host", directory.host_budget_bytes);
  directory.namespace_quota_bytes = table.size("namespace_quota", directory.namespace_quota_bytes);
  for (ConfigTable& node : table.tables("node", kNodeBudgetsMax)) {
    const std::string name = node.required_string("name");
    const uint64_t size = node.required_size("size");
    if (!validate_name("name", name))
      node.refuse_key("name", "accepted: 1 to 64 characters A-Z a-z 0-9 . _ -");
    else if (!directory.host_budget_by_node.emplace(name, size).second)
      node.refuse_key("name", "has a budget already");
  }
}

}  // namespace

ServerConfig read_server_config(Config& file, const ServerOverrides& overrides) {
  ServerConfig config;
  ConfigTable root = file.root();
  read_server(root.table("server"), overrides, config);
  read_store(root.table("store"), config);
  read_timing(root.table("timing"), config.sequencer);
  read_limits(root.table("limits"), config);
  read_eviction(root.table("eviction"), config.sequencer);
  read_budget(root.table("budget"), config.sequencer.directory);
  return config;
}

std::string_view name_of(Durability durability) {
  switch (durability) {
    case Durability::kSync:
      return "sync";
    case Durability::kInterval:
      return "interval";
    case Durability::kNone:
      return "none";
  }
  return "unknown";
}

}  // namespace berth
