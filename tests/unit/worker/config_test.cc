// The worker's configuration: what is accepted, and how a mistake is named.
#include "worker/config.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/common/temporary_directory.h"

namespace berth::worker {
namespace {

using berth::testing::TemporaryDirectory;
using Catch::Contains;

constexpr HostMemory kHost{.total_bytes = uint64_t{16} << 30,
                           .available_bytes = uint64_t{8} << 30,
                           .cgroup_limit_bytes = std::nullopt};

struct Files {
  TemporaryDirectory directory;

  std::string good() const {
    const std::string& d = directory.path();
    return "[worker]\nname = \"w0\"\nnode = \"local\"\nserver = \"unix:" + d +
           "/d.sock\"\nsocket = \"" + d + "/w0.sock\"\nruntime_directory = \"" + d +
           "\"\n[[pool]]\nname = \"cpu\"\nmedium = \"cpu\"\nscope = \"host\"\n"
           "capacity = \"2GiB\"\npage = \"4KiB\"\n";
  }
  Result<WorkerConfig> load(const std::string& text) const {
    const std::string path = directory.path() + "/w.toml";
    std::ofstream(path) << text;
    return load_worker_config(path, kHost);
  }
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a plain configuration is read, with its defaults", "[worker][config]") {
  const Files files;
  const auto config = files.load(files.good());
  INFO((config ? std::string() : config.error().message));
  REQUIRE(config);
  CHECK(config->name == "w0");
  CHECK(config->clients_max == 64);
  CHECK_FALSE(config->http);
  REQUIRE(config->pools.size() == 1);
  CHECK(config->pools[0].capacity_bytes == uint64_t{2} << 30);
  CHECK(config->pools[0].page_bytes == 4096);
  CHECK(config->pools[0].scope == pool::Scope::kHost);
  CHECK_THAT(config->description, Contains("pool[0].capacity = 2147483648"));
}

TEST_CASE("every mistake names its line, its key and what is accepted", "[worker][config]") {
  struct Row {
    std::string from;
    std::string to;
    std::vector<std::string> expected;
  };
  const std::string capacity = "capacity = \"2GiB\"";
  const Files files;
  for (const Row& row : std::vector<Row>{
           {capacity, "capacity = \"8 GB\"", {"w.toml:11", "capacity", "GiB"}},
           {capacity, "capacity = \"1.5g\"", {"capacity", "GiB"}},
           {capacity, "capacity = \"-1\"", {"capacity", "GiB"}},
           {capacity, "capacity = \"32GiB\"", {"capacity", "16GiB", "memory"}},
           {capacity, "capacity = \"4097\"", {"capacity", "whole pages"}},
           {capacity, "", {"capacity"}},
           {"page = \"4KiB\"", "page = \"12KiB\"", {"page", "power of two"}},
           {"page = \"4KiB\"", "page = \"4KiB\"\nbudget = \"3GiB\"", {"budget", "at most 2GiB"}},
           {"page = \"4KiB\"", "page = \"4KiB\"\nengine = \"e0\"", {"engine", "process"}},
           {"page = \"4KiB\"", "page = \"4KiB\"\nnuma_node = 1", {"numa_node", "required"}},
           {"page = \"4KiB\"", "page = \"4KiB\"\nmlock = true", {"mlock"}},
           {"page = \"4KiB\"", "page = \"4KiB\"\npinned = 3", {"pinned"}},
           {"scope = \"host\"", "scope = \"domain\"", {"scope", "process"}},
           {"medium = \"cpu\"", "medium = \"hbm\"", {"medium", "cpu"}},
           {"name = \"w0\"", "name = \"../w0\"", {"worker.name", "A-Z"}},
           {"name = \"w0\"\n", "", {"name"}},
           {"node = \"local\"", "nod = \"local\"", {"nod", "did you mean node"}},
           {"node = \"local\"", "clients_max = 0", {"clients_max", "1"}},
           {"node = \"local\"", "write_order = [\"cxl\"]", {"write_order", "cxl"}},
           {"node = \"local\"", "http = \"unix:/x\"", {"http", "off"}},
           {"/w0.sock\"", "/absent/w0.sock\"", {"socket", "/absent"}},
           {"server = \"unix:", "server = \"10.0.0.1:7420\"\n#", {"server", "insecure"}},
       }) {
    INFO(row.to);
    const auto config = files.load(replaced(files.good(), row.from, row.to));
    REQUIRE_FALSE(config);
    CHECK(config.error().reason == Reason::kInvalidConfig);
    for (const std::string& part : row.expected) CHECK_THAT(config.error().message, Contains(part));
  }
}

TEST_CASE("a size that cannot be read is one mistake", "[worker][config]") {
  const Files files;
  for (const std::string given : {"8 GB", "0", "-1"}) {
    INFO(given);
    const auto config =
        files.load(replaced(files.good(), "capacity = \"2GiB\"", "capacity = \"" + given + "\""));
    REQUIRE_FALSE(config);
    const std::string& text = config.error().message;
    CHECK(std::count(text.begin(), text.end(), '\n') + !text.ends_with('\n') == 1);
  }
}

TEST_CASE("pools together must fit the host, and have names of their own", "[worker][config]") {
  const Files files;
  const std::string more = "[[pool]]\nname = \"cpu\"\ncapacity = \"15GiB\"\n";
  const auto config = files.load(files.good() + more);
  REQUIRE_FALSE(config);
  CHECK_THAT(config.error().message, Contains("name of its own"));
  CHECK_THAT(config.error().message, Contains("together take 17GiB"));
  CHECK_FALSE(files.load(files.good().substr(0, files.good().find("[[pool]]"))));
}

TEST_CASE("the shipped example is read", "[worker][config]") {
  std::ifstream file(std::string(BERTH_SOURCE_DIR) + "/deploy/berth-worker.toml");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const Files files;
  // The example's directories need not exist where the tests run.
  while (text.find("/run/berth") != std::string::npos) {
    text = replaced(text, "/run/berth", files.directory.path());
  }
  const auto config = files.load(text);
  INFO((config ? std::string() : config.error().message));
  CHECK(config);
}

}  // namespace berth::worker
