#include "server/config.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

namespace berth::testing {
namespace {

using Catch::Contains;

struct Read {
  ServerConfig config;
  Result<> checked;
  std::string described;
};

Read read(const std::string& text, const ServerOverrides& overrides = {}) {
  auto file = Config::parse(text, "berthd.toml");
  REQUIRE(file);
  Read read{read_server_config(*file, overrides), {}, ""};
  read.checked = file->finish();
  read.described = file->describe();
  return read;
}

std::string mistakes(const std::string& text) {
  const Read result = read(text);
  return result.checked ? "" : result.checked.error().message;
}

std::string without_marks(std::string text) {
  const std::string mark = "  # default";
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark))
    text.erase(at, mark.size());
  return text;
}

}  // namespace

TEST_CASE("without a file the documented defaults hold", "[server][config]") {
  const Read result = read("");
  REQUIRE(result.checked);
  const ServerConfig& config = result.config;
  REQUIRE(config.listeners.size() == 1);
  CHECK(config.listeners[0].address.text() == "127.0.0.1:7420");
  CHECK(config.http->text() == "127.0.0.1:7421");
  CHECK(config.state_directory == "/var/lib/berth");
  CHECK(config.sequencer.durability == Durability::kInterval);
  CHECK(config.sequencer.flush_interval == milliseconds(100));
}

TEST_CASE("the shipped example names every key with its default", "[server][config]") {
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/deploy/berthd.toml");
  std::stringstream text;
  text << file.rdbuf();
  const Read shipped = read(text.str());
  REQUIRE(shipped.checked);
  // A key that the example leaves out would be marked as a default.
  CHECK_THAT(shipped.described, !Contains("# default"));
  CHECK(shipped.described == without_marks(read("").described));
}

TEST_CASE("the service manager's state directory is the default", "[server][config]") {
  ServerOverrides overrides;
  overrides.state_directory = "/var/lib/private/berth";
  CHECK(read("", overrides).config.state_directory == "/var/lib/private/berth");
  CHECK(read("[server]\nstate_directory = \"/srv/berth\"", overrides).config.state_directory ==
        "/srv/berth");
}

TEST_CASE("what is wrong is refused with file, line, key and form", "[server][config]") {
  const auto [text, key, accepted] = GENERATE(table<std::string, std::string, std::string>({
      {"[server]\nlisten = [\"7420\"]", "berthd.toml:2: server.listen", "HOST:PORT"},
      {"[server]\nlisten = []", "server.listen", "1 to 8 addresses"},
      {"[server]\nlisten = [\"unix:/a\", \"unix:/a\"]", "server.listen", "is named twice"},
      {"[server]\nlisten = [\"0.0.0.0:7420\"]", "\"0.0.0.0:7420\"", "insecure = true"},
      {"[server]\nhttp = \"unix:/x\"", "server.http = \"unix:/x\"", "\"off\""},
      {"[server]\nstate_directory = \"state\"", "server.state_directory = \"state\"",
       "an absolute path"},
      {"[server]\nlog_level = \"loud\"", "server.log_level = \"loud\"", "debug"},
      {"[store]\ndurability = \"maybe\"", "store.durability = \"maybe\"", "interval"},
      {"[store]\nmemtable = \"8 GB\"", "store.memtable = \"8 GB\"", "GiB"},
      {"[store]\nmemtable = \"1.5g\"", "store.memtable = \"1.5g\"", "GiB"},
      {"[store]\nmemtable = -1", "store.memtable = -1", "GiB"},
      {"[store]\nflush_interval = 100", "store.flush_interval = 100", "ms"},
      {"[store]\nflush_interval = \"0ms\"", "store.flush_interval = \"0ms\"", "1ms"},
      {"[timing]\nheartbeat_interval = \"4s\"", "timing.heartbeat_deadline",
       "three times heartbeat_interval"},
      {"[timing]\nheartbeat_interval = \"10s\"\nheartbeat_deadline = \"29s\"",
       "berthd.toml:3: timing.heartbeat_deadline", "three times heartbeat_interval"},
      {"[timing]\nwrite_deadline = \"11min\"", "timing.write_deadline", "write_deadline_max"},
      {"[timing]\nlease_ttl = \"2h\"", "timing.lease_ttl", "lease_ttl_max"},
      {"[timing]\nstep_max = \"50ms\"", "timing.step_max", "at least tick_interval"},
      {"[timing]\nstep_max = \"6s\"", "timing.step_max", "half of heartbeat_deadline"},
      {"[limits]\nbatch_items_max = 0", "limits.batch_items_max = 0", "1"},
      {"[limits]\nbatch_items_max = 70000", "limits.batch_items_max = 70000", "65536"},
      {"[limits]\nlink_messages_max = 4096", "limits.link_messages_max",
       "more than link_requests_max"},
      {"[limits]\nbatch_item_max = 5", "batch_item_max", "batch_items_max"},
      {"[budget]\nhost = \"50%\"", "budget.host = \"50%\"", "GiB"},
      {"[[budget.node]]\nname = \"a/b\"\nsize = \"1GiB\"", "budget.node[0].name = \"a/b\"",
       "characters"},
      {"[[budget.node]]\nname = \"a\"", "budget.node[0].size", "GiB"},
      {"[[budget.node]]\nname = \"a\"\nsize = 1\n[[budget.node]]\nname = \"a\"\nsize = 2",
       "budget.node[1].name = \"a\"", "has a budget already"},
      {"[sever]\nhttp = \"off\"", "sever", "server"},
  }));
  INFO(text);
  CHECK_THAT(mistakes(text), Contains(key) && Contains(accepted));
}

TEST_CASE("plain TCP beyond the host is allowed only when asked for", "[server][config]") {
  const std::string listen = "[server]\nlisten = [\"0.0.0.0:7420\"]\n";
  CHECK_FALSE(read(listen).checked);
  CHECK(read(listen + "insecure = true").checked);
  ServerOverrides overrides;
  overrides.insecure = true;
  const Read asked = read(listen, overrides);
  CHECK(asked.checked);
  CHECK(asked.config.listeners[0].exposure == Exposure::kInsecureAllowed);
}

TEST_CASE("budgets are of hosts by name", "[server][config]") {
  const auto budget = read(
                          "[budget]\nhost = \"8GiB\"\nnamespace_quota = \"1GiB\"\n"
                          "[[budget.node]]\nname = \"gpu-12\"\nsize = \"16GiB\"")
                          .config.sequencer.directory;
  CHECK(budget.host_budget_bytes == uint64_t{8} << 30);
  CHECK(budget.namespace_quota_bytes == uint64_t{1} << 30);
  CHECK(budget.host_budget_by_node.at("gpu-12") == uint64_t{16} << 30);
}

TEST_CASE("a short heartbeat deadline makes the clock finer by itself", "[server][config]") {
  const Read result =
      read("[timing]\nheartbeat_interval = \"50ms\"\nheartbeat_deadline = \"400ms\"");
  REQUIRE(result.checked);
  CHECK(result.config.sequencer.max_step == milliseconds(100));
  CHECK(result.config.sequencer.tick_interval == milliseconds(50));
}

}  // namespace berth::testing
