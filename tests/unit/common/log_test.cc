// Log lines: one event, one line, whatever the values hold.
#include "common/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "common/unique_fd.h"
#include "tests/unit/common/temporary_directory.h"

namespace berth {
namespace {

// What `act` writes to stderr.
template <class Act>
std::string stderr_of(Act act) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stderr";
  {
    const UniqueFd saved(dup(2));
    const UniqueFd file(open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    dup2(file.get(), 2);
    act();
    dup2(saved.get(), 2);
  }
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("an event prints its fields in order, each kind in its own form", "[common][log]") {
  CHECK(log::format_event("pool_registered", {{"pool", make_id<PoolId>(3, 17)},
                                              {"bytes", uint64_t{8} << 30},
                                              {"delta", -4},
                                              {"warm", true},
                                              {"ratio", 0.25},
                                              {"lease", seconds(90)},
                                              {"store", Id128{1, 2}},
                                              {"reason", Reason::kQueueFull},
                                              {"name", std::string("w0")}}) ==
        "pool_registered pool=e3-17 bytes=8589934592 delta=-4 warm=true ratio=0.25 lease=90s "
        "store=00000000000000010000000000000002 reason=queue_full name=w0");
  CHECK(log::format_event("started", {}) == "started");
}

TEST_CASE("a value that could break the line or look like a field is quoted", "[common][log]") {
  CHECK(log::format_event("e", {{"v", "two words"}}) == "e v=\"two words\"");
  CHECK(log::format_event("e", {{"v", "a\nfatal x=1"}}) == "e v=\"a\\nfatal x=1\"");
  CHECK(log::format_event("e", {{"v", "x=1"}}) == "e v=\"x=1\"");
  CHECK(log::format_event("e", {{"v", ""}}) == "e v=\"\"");
  CHECK(log::format_event("e", {{"v", "\x1b[2J"}}) == "e v=\"\\x1b[2J\"");
  CHECK(log::format_event("e", {{"v", "say \"no\""}}) == "e v=\"say \\\"no\\\"\"");
}

TEST_CASE("a line on stderr has time, level and event", "[common][log]") {
  const std::string text = stderr_of([] { log::warning("pool_full", {{"pool", "a b{}"}}); });
  CAPTURE(text);
  REQUIRE(text.size() > 25);
  CHECK(text[10] == 'T');
  CHECK(text[23] == 'Z');
  CHECK(text.substr(24) == " warning pool_full pool=\"a b{}\"\n");
}

TEST_CASE("events below the level are dropped", "[common][log]") {
  CHECK(stderr_of([] { log::debug("detail"); }).empty());
  log::set_level(log::Level::kDebug);
  CHECK_FALSE(stderr_of([] { log::debug("detail"); }).empty());
  log::set_level(log::Level::kError);
  CHECK(stderr_of([] { log::warning("pool_full"); }).empty());
  CHECK_FALSE(stderr_of([] { log::error("store_degraded"); }).empty());
  log::set_level(log::Level::kInfo);
}

TEST_CASE("levels are read by name and nothing else", "[common][log]") {
  CHECK(log::parse_level("log.level", "debug").value() == log::Level::kDebug);
  CHECK(log::parse_level("log.level", "error").value() == log::Level::kError);
  CHECK(log::parse_level("log.level", "Info").error().message ==
        "log.level = \"Info\": not a log level; accepted: debug, info, warning or error");
}

TEST_CASE("only the stream that JOURNAL_STREAM names is the journal", "[common][log]") {
  const testing::TemporaryDirectory directory;
  const UniqueFd file(open((directory.path() + "/f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  struct stat facts {};
  REQUIRE(fstat(file.get(), &facts) == 0);
  const std::string here = std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
  CHECK(log::is_journal_stream(here.c_str(), file.get()));
  CHECK_FALSE(log::is_journal_stream((here + "0").c_str(), file.get()));
  CHECK_FALSE(log::is_journal_stream("", file.get()));
  CHECK_FALSE(log::is_journal_stream(nullptr, file.get()));
  CHECK_FALSE(log::is_journal_stream(here.c_str(), -1));
}

}  // namespace berth
