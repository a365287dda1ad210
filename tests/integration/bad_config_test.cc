// Configuration mistakes: each is refused before anything is made or touched, by a message that
// names file, line, key and value and the accepted form.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/integration/cluster.h"

namespace berth::testing {
namespace {

// `from` in a good configuration becomes `to`; the message must hold `expected`.
struct Mistake {
  std::string from;
  std::string to;
  std::vector<std::string> expected;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  INFO(text << "\nlacks " << from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

size_t count_files(const std::string& directory) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory))
    count += entry.is_regular_file();
  return count;
}

void check_mistake(const std::string& daemon, const std::string& good, const Mistake& mistake) {
  TemporaryDirectory work;
  const std::string config = work.path() + "/bad.toml";
  write_file(config, replaced(good, mistake.from, mistake.to));
  const Finished run = run_to_end({program(daemon), "--config", config}, work.path() + "/out.log");
  INFO(daemon << " with " << mistake.to << ": " << run.output);
  CHECK(run.code == 2);
  for (const std::string& part : mistake.expected) CHECK_THAT(run.output, Catch::Contains(part));
  CHECK_THAT(run.output, Catch::Contains("bad.toml"));
  const Finished checked = run_to_end({program(daemon), "--config", config, "--check-config"},
                                      work.path() + "/check.log");
  INFO("--check-config: " << checked.output);
  CHECK(checked.code == 2);
}

}  // namespace

TEST_CASE("the server refuses a bad configuration by key and accepted form",
          "[integration][FC-38]") {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/state");
  const std::string good = server_config(directory.path(), {});
  const std::string state = "state_directory = \"" + directory.path() + "/state\"";
  const std::vector<Mistake> mistakes = {
      {"heartbeat_interval = \"200ms\"", "heartbeat_interval = \"0.2s\"", {"heartbeat_interval"}},
      {"heartbeat_interval = \"200ms\"", "heartbeat_interval = \"-1\"", {"heartbeat_interval"}},
      {"heartbeat_interval = \"200ms\"", "heartbeat_interval = 0", {"heartbeat_interval"}},
      {"heartbeat_interval = \"200ms\"", "heartbeat_interval = \"10 min\"", {"heartbeat_interval"}},
      {"heartbeat_deadline = \"3000ms\"", "heartbeat_deadline = \"1e12h\"", {"heartbeat_deadline"}},
      {"heartbeat_deadline = \"3000ms\"", "heartbeat_deadline = \"300ms\"", {"heartbeat_deadline"}},
      {"durability", "durabillity", {"durabillity", "did you mean durability"}},
      {"durability = \"interval\"", "durability = \"always\"", {"durability", "interval"}},
      {"batch_items_max = 4096", "batch_items_max = -5", {"batch_items_max", "-5"}},
      {"batch_items_max = 4096", "batch_items_max = 0", {"batch_items_max"}},
      {"batch_items_max = 4096", "no_such_key = 1", {"no_such_key"}},
      {state, "state_directory = \"relative\"", {"state_directory", "absolute path"}},
      {"unix:", "tcp:", {"listen"}},
      {"[server]", "[sever]", {"sever"}},
      {"[server]", "[server", {"bad.toml:"}},
  };
  for (const Mistake& mistake : mistakes) check_mistake("berthd", good, mistake);
  CHECK(count_files(directory.path() + "/state") == 0);
}

TEST_CASE("a state directory that does not exist is refused and not made", "[integration][FC-38]") {
  TemporaryDirectory directory;
  write_file(directory.path() + "/berthd.toml", server_config(directory.path(), {}));
  const Finished run =
      run_to_end({program("berthd"), "--config", directory.path() + "/berthd.toml"},
                 directory.path() + "/out.log");
  CHECK(run.code == 2);
  CHECK_THAT(run.output, Catch::Contains("server.state_directory") &&
                             Catch::Contains(directory.path() + "/state") &&
                             Catch::Contains("accepted"));
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/state"));
}

TEST_CASE("the worker refuses a bad configuration by key and accepted form",
          "[integration][FC-38]") {
  TemporaryDirectory directory;
  const WorkerTuning tuning;
  std::filesystem::create_directory(worker_runtime(directory.path(), tuning));
  const std::string good = worker_config(directory.path(), tuning);
  const std::string capacity = "capacity = \"65536KiB\"";
  const std::string page = "page = \"64KiB\"";
  const auto size = [&](const std::string& value) {
    return Mistake{capacity, "capacity = " + value, {"capacity", "accepted"}};
  };
  const std::vector<Mistake> mistakes = {
      size("\"8 GB\""),
      size("\"1.5g\""),
      size("\"-1\""),
      size("-5"),
      size("0"),
      size("\"50%\""),
      size("\"\""),
      size("\"16gb\""),
      size("\"1e9\""),
      size("\"8GiB junk\""),
      size("9223372036854775808"),
      {capacity, "capacity = \"1000000GiB\"", {"capacity", "memory"}},
      {capacity, "capacity = \"65540KiB\"", {"capacity"}},  // not a multiple of the page
      {page, "page = \"48KiB\"", {"page", "power of two"}},
      {page, "page = \"1KiB\"", {"page"}},
      {"scope = \"host\"", "scope = \"rack\"", {"scope", "host"}},
      {"medium = \"cpu\"", "medium = \"tape\"", {"medium", "cpu"}},
      {"name = \"w0\"", "name = \"../w0\"", {"name"}},
      {"name = \"w0\"", "name = \"\"", {"name"}},
      {"node = \"node-a\"", "nod = \"node-a\"", {"nod", "did you mean node"}},
      {"[[pool]]", "[[pol]]", {"pol"}},
      {"/run\"", "/absent\"", {"/absent"}},
      {"server = \"unix:", "server = \"0.0.0.0:1unix:", {"server"}},
  };
  for (const Mistake& mistake : mistakes) check_mistake("berth-worker", good, mistake);
  CHECK(count_files(worker_runtime(directory.path(), tuning)) == 0);
}

TEST_CASE("several mistakes are reported at once, in the order of the file",
          "[integration][FC-38]") {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/state");
  std::string config = server_config(directory.path(), {});
  config = replaced(config, "heartbeat_interval = \"200ms\"", "heartbeat_interval = \"fast\"");
  config = replaced(config, "batch_items_max = 4096", "batch_items_max = \"many\"");
  write_file(directory.path() + "/bad.toml", config);
  const Finished run = run_to_end({program("berthd"), "--config", directory.path() + "/bad.toml"},
                                  directory.path() + "/out.log");
  CHECK(run.code == 2);
  const size_t first = run.output.find("heartbeat_interval");
  const size_t second = run.output.find("batch_items_max");
  INFO(run.output);
  REQUIRE(first != std::string::npos);
  REQUIRE(second != std::string::npos);
  CHECK(first < second);
}

TEST_CASE("a configuration that is good is printed with every value in force", "[integration]") {
  TemporaryDirectory directory;
  std::filesystem::create_directory(directory.path() + "/state");
  write_file(directory.path() + "/good.toml", server_config(directory.path(), {}));
  const Finished run =
      run_to_end({program("berthd"), "--config", directory.path() + "/good.toml", "--check-config"},
                 directory.path() + "/out.log");
  INFO(run.output);
  CHECK(run.code == 0);
  CHECK_THAT(run.output, Catch::Contains("heartbeat_interval = 200"));
  CHECK_THAT(run.output, Catch::Contains("# default"));
  CHECK(count_files(directory.path() + "/state") == 0);
}

}  // namespace berth::testing
