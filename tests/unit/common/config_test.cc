// The typed view of a TOML file: values, fallbacks, and mistakes reported by file, line and key.
#include "common/config.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

Config config_of(const std::string& text) { return Config::parse(text, "berthd.toml").value(); }

// The message of finish(), or "" when nothing is wrong.
std::string mistakes_of(const Config& config) {
  const auto read = config.finish();
  return read ? "" : read.error().message;
}

}  // namespace

TEST_CASE("values of every kind are read as written", "[common][config]") {
  const Config config = config_of(R"(
name = "w0"
verbose = true
[store]
path = "/var/lib/berth"
durability = "sync"
flush_every = "250ms"
[[pool]]
size = "8GiB"
order = ["cpu", "cxl"]
[[pool]]
size = 4096
queue = 7
)");
  ConfigTable root = config.root();
  CHECK(root.string("name", "") == "w0");
  CHECK(root.boolean("verbose", false));
  ConfigTable store = root.table("store");
  CHECK(store.required_string("path") == "/var/lib/berth");
  CHECK(store.choice("durability", "interval", {"sync", "interval", "none"}) == "sync");
  CHECK(store.duration("flush_every", milliseconds(100)) == milliseconds(250));
  std::vector<ConfigTable> pools = root.tables("pool", 8);
  REQUIRE(pools.size() == 2);
  CHECK(pools[0].required_size("size") == uint64_t{8} << 30);
  CHECK(pools[0].strings("order", {}) == std::vector<std::string>{"cpu", "cxl"});
  CHECK(pools[0].integer("queue", 32, {1, 64}) == 32);
  CHECK(pools[1].required_size("size") == 4096);
  CHECK(pools[1].strings("order", {"cpu"}) == std::vector<std::string>{"cpu"});
  CHECK(pools[1].integer("queue", 32, {1, 64}) == 7);
  CHECK(mistakes_of(config).empty());
}

TEST_CASE("a file that lacks everything reads as the fallbacks", "[common][config]") {
  const Config config = config_of("");
  ConfigTable root = config.root();
  CHECK(root.string("name", "w0") == "w0");
  CHECK(root.table("store").duration("flush_every", seconds(1)) == seconds(1));
  CHECK(root.tables("pool", 8).empty());
  CHECK_FALSE(root.has("name"));
  CHECK(mistakes_of(config).empty());
}

TEST_CASE("a bad value is reported with file, line, key, value and accepted form",
          "[common][config]") {
  const Config config = config_of("[pool]\nsize = \"8 GB\"\n");
  CHECK(config.root().table("pool").size("size", 1) == 1);
  CHECK(mistakes_of(config) ==
        "berthd.toml:2: pool.size = \"8 GB\": not a size; accepted: a whole number with KiB, MiB, "
        "GiB or TiB, e.g. \"8GiB\"");
}

TEST_CASE("each getter names what it accepts when the kind is wrong", "[common][config]") {
  const auto mistake = [](const std::string& value, auto get) {
    const Config config = config_of("key = " + value + "\n");
    ConfigTable root = config.root();
    get(root);
    return mistakes_of(config);
  };
  CHECK(mistake("5", [](auto& t) { t.string("key", ""); }) ==
        "berthd.toml:1: key = 5: not a text; accepted: text in double quotes");
  CHECK(mistake("\"\"", [](auto& t) { t.required_string("key"); }) ==
        "berthd.toml:1: key = \"\": empty; accepted: text in double quotes");
  CHECK(mistake("\"yes\"", [](auto& t) { t.boolean("key", false); }) ==
        "berthd.toml:1: key = \"yes\": not a switch; accepted: true or false");
  CHECK(mistake("\"7\"", [](auto& t) {
          t.integer("key", 1, {1, 9});
        }) == "berthd.toml:1: key = \"7\": not a number; accepted: a whole number from 1 to 9");
  CHECK(mistake("10", [](auto& t) {
          t.integer("key", 1, {1, 9});
        }) == "berthd.toml:1: key = 10: out of range; accepted: a whole number from 1 to 9");
  CHECK(mistake("\"fast\"", [](auto& t) {
          t.choice("key", "sync", {"sync", "none"});
        }) == "berthd.toml:1: key = \"fast\": not a choice; accepted: \"sync\", \"none\"");
  CHECK(mistake("-1", [](auto& t) { t.size("key", 1); }) ==
        "berthd.toml:1: key = -1: not a size; accepted: a whole number with KiB, MiB, GiB or TiB, "
        "e.g. \"8GiB\"");
  CHECK(mistake("1.5", [](auto& t) {
          t.size("key", 1);
        }).rfind("berthd.toml:1: key = 1.5: not a size", 0) == 0);
  CHECK(mistake("\"1KiB\"", [](auto& t) {
          t.size("key", 1, {1 << 20, 1 << 30});
        }) == "berthd.toml:1: key = \"1KiB\": out of range; accepted: 1MiB to 1GiB");
  CHECK(mistake("0", [](auto& t) {
          t.size("key", 1, {1, kAnySize.max});
        }) == "berthd.toml:1: key = 0: out of range; accepted: at least 1");
  CHECK(mistake("10", [](auto& t) { t.duration("key", seconds(1)); }) ==
        "berthd.toml:1: key = 10: not a duration; accepted: a whole number with ms, s, min or h, "
        "e.g. \"10s\"");
  CHECK(mistake("\"0s\"", [](auto& t) {
          t.duration("key", seconds(1), {seconds(1), seconds(9)});
        }) == "berthd.toml:1: key = \"0s\": out of range; accepted: 1s to 9s");
  CHECK(mistake("[1, 2]", [](auto& t) { t.strings("key", {}); }) ==
        "berthd.toml:1: key = a list: not a list of texts; accepted: [\"a\", \"b\"]");
  CHECK(mistake("3", [](auto& t) { t.table("key"); }) ==
        "berthd.toml:1: key = 3: not a table; accepted: [key] and keys under it");
  CHECK(mistake("3", [](auto& t) { t.tables("key", 4); }) ==
        "berthd.toml:1: key = 3: not a list of tables; accepted: [[key]], repeated");
  CHECK(mistake("[{}, {}, {}]", [](auto& t) { t.tables("key", 2); }) ==
        "berthd.toml:1: key = a list: too many tables; accepted: at most 2");
}

TEST_CASE("a value that looks like the end of a value does not confuse the report",
          "[common][config]") {
  const Config config = config_of("key = '1\": 2'\n");
  config.root().duration("key", seconds(1));
  CHECK(
      mistakes_of(config) ==
      "berthd.toml:1: key = \"1\\\": 2\": not a duration; accepted: a whole number with ms, s, min "
      "or h, e.g. \"10s\"");
}

TEST_CASE("a missing key is reported at its table", "[common][config]") {
  const Config config = config_of("\n[[pool]]\nmedium = \"cpu\"\n");
  ConfigTable pool = config.root().tables("pool", 8).at(0);
  pool.string("medium", "");
  CHECK(pool.required_size("size", {4096, kAnySize.max}) == 4096);
  CHECK(mistakes_of(config) ==
        "berthd.toml:2: pool[0].size: missing; accepted: a size, e.g. \"8GiB\"");
}

TEST_CASE("an unknown key is reported with the nearest key that exists", "[common][config]") {
  const Config config = config_of("nmae = \"w0\"\n[[pool]]\nsize = \"1GiB\"\nsise = \"1GiB\"\n");
  ConfigTable root = config.root();
  root.string("name", "");
  root.tables("pool", 8).at(0).size("size", 0);
  CHECK(mistakes_of(config) ==
        "berthd.toml:1: unknown key nmae; did you mean name?\n"
        "berthd.toml:4: unknown key pool[0].sise; did you mean size?");
}

TEST_CASE("an unknown key that is near to nothing gets the list of keys", "[common][config]") {
  const Config config = config_of("[store]\ncolour = \"red\"\n[surprise]\nx = 1\n");
  ConfigTable store = config.root().table("store");
  store.string("path", "");
  store.boolean("sync", false);
  CHECK(mistakes_of(config) ==
        "berthd.toml:2: unknown key store.colour; accepted here: path, sync\n"
        "berthd.toml:3: unknown key surprise; accepted here: store");
}

TEST_CASE("all mistakes come at once, in the order of the file", "[common][config]") {
  const Config config = config_of("b = 1\na = 2\nc = 3\n");
  ConfigTable root = config.root();
  root.string("c", "");
  root.string("a", "");
  CHECK(mistakes_of(config) ==
        "berthd.toml:1: unknown key b; did you mean a?\n"
        "berthd.toml:2: a = 2: not a text; accepted: text in double quotes\n"
        "berthd.toml:3: c = 3: not a text; accepted: text in double quotes");
}

TEST_CASE("a flood of mistakes is cut and counted", "[common][config]") {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "key" + std::to_string(i) + " = 1\n";
  const std::string mistakes = mistakes_of(config_of(text));
  CHECK(std::count(mistakes.begin(), mistakes.end(), '\n') == 20);
  CHECK(mistakes.find("and 30 more") != std::string::npos);
}

TEST_CASE("a value that does not go with another is refused by its key", "[common][config]") {
  const Config config = config_of("heartbeat = \"5s\"\n");
  ConfigTable root = config.root();
  root.duration("heartbeat", seconds(1));
  root.duration("expiry", seconds(10));
  root.refuse_key("heartbeat", "three heartbeats must fit into expiry");
  root.refuse_key("expiry", "three heartbeats must fit into it");
  CHECK(mistakes_of(config) ==
        "berthd.toml: expiry = 10000 ms (10s) (default): three heartbeats must fit into it\n"
        "berthd.toml:1: heartbeat = \"5s\": three heartbeats must fit into expiry");
}

TEST_CASE("a broken file is refused with the line where it breaks", "[common][config]") {
  const std::string text = GENERATE(as<std::string>(), "a = 1\nb = \n", "a = 1\nb = \"open\n",
                                    "a = 1\na = 2\n", "a = 1\n[b\n");
  CAPTURE(text);
  const auto config = Config::parse(text, "w.toml");
  REQUIRE_FALSE(config.has_value());
  CAPTURE(config.error().message);
  CHECK(config.error().reason == Reason::kInvalidConfig);
  CHECK(config.error().message.rfind("w.toml:2: not valid TOML: ", 0) == 0);
  CHECK(config.error().message.find('\n') == std::string::npos);
}

TEST_CASE("a file that cannot be read is refused by name", "[common][config]") {
  const testing::TemporaryDirectory directory;
  const auto missing = Config::load(directory.path() + "/none.toml");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().message == directory.path() +
                                       "/none.toml: cannot read the configuration: No such file or "
                                       "directory");
  CHECK_FALSE(Config::load(directory.path()).has_value());
}

TEST_CASE("a file far too large for a configuration is refused", "[common][config]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/big.toml";
  std::ofstream(path) << std::string(kConfigFileBytesMax + 1, '#');
  const auto config = Config::load(path);
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().message.find("larger than 1MiB") != std::string::npos);
}

TEST_CASE("a file is loaded from disk with or without a final newline", "[common][config]") {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/w.toml";
  std::ofstream(path) << "name = \"w7\"";
  const auto config = Config::load(path);
  REQUIRE(config.has_value());
  CHECK(config->root().string("name", "") == "w7");
}

TEST_CASE("the values in force print in one unit, defaults marked", "[common][config]") {
  const Config config = config_of("size = \"8GiB\"\nname = \"w\\n0\"\n");
  ConfigTable root = config.root();
  root.size("size", 0);
  root.duration("lease", seconds(90));
  root.string("name", "");
  root.strings("order", {"cpu", "ssd"});
  root.boolean("quiet", false);
  root.table("grpc").integer("threads", 2, {1, 8});
  CHECK(config.describe() ==
        "size = 8589934592 bytes (8GiB)\n"
        "lease = 90000 ms (90s)  # default\n"
        "name = \"w\\n0\"\n"
        "order = [\"cpu\", \"ssd\"]  # default\n"
        "quiet = false  # default\n"
        "grpc.threads = 2  # default\n");
}

}  // namespace berth
