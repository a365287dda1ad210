// The command line of berth-replay.
#include "worker/replay/options.h"

#include <catch2/catch.hpp>

namespace berth::replay {
namespace {

ParsedOptions parse(std::vector<std::string> words) {
  words.insert(words.begin(), "berth-replay");
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  return parse_options(static_cast<int>(pointers.size()), pointers.data());
}

TEST_CASE("sizes and words of the command line are understood", "[replay][options]") {
  const ParsedOptions parsed =
      parse({"--local", "--trace", "t.jsonl", "--block-bytes", "4096", "--cpu-pool", "2GiB",
             "--engines", "4", "--workers", "2", "--routing", "round-robin", "--json"});
  REQUIRE_FALSE(parsed.exit_code);
  CHECK(parsed.options.block_bytes == 4096);
  CHECK(parsed.options.cpu_pool_bytes == uint64_t{2} << 30);
  CHECK(parsed.options.routing == Routing::kRoundRobin);
  CHECK_FALSE(parsed.options.generate);
  CHECK(parse({"--local"}).options.generate == TraceKind::kChat);
}

TEST_CASE("a wrong command line ends with code 2 or the parser's own", "[replay][options]") {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{},  // nothing to replay against
                                             {"--local", "--block-bytes", "8 GB"},
                                             {"--local", "--block-bytes", "0"},
                                             {"--local", "--cpu-pool", "1.5g"},
                                             {"--local", "--engines", "0"},
                                             {"--local", "--workers", "65"},
                                             {"--local", "--routing", "random"},
                                             {"--local", "--generate", "poems"},
                                             {"--local", "--scope", "galaxy"},
                                             {"--local", "--namespace", "../up"},
                                             {"--local", "--speed", "-1"},
                                             {"--local", "--worker-socket", "/tmp/w.sock"},
                                             {"--local", "--trace", "a", "--generate", "chat"},
                                             {"--local", "--no-such-option"}}) {
    const ParsedOptions parsed = parse(wrong);
    REQUIRE(parsed.exit_code);
    CHECK(*parsed.exit_code != 0);
  }
}

TEST_CASE("an engine process understands the arguments that its parent gives it",
          "[replay][options]") {
  ParsedOptions parent = parse({"--local", "--generate", "rag", "--seed", "9", "--requests", "50",
                                "--limit", "40", "--engines", "3", "--speed", "2.5", "--processes",
                                "--block-bytes", "8KiB", "--probe-deadline", "250ms"});
  REQUIRE_FALSE(parent.exit_code);
  parent.options.worker_sockets = {"/tmp/w0.sock", "/tmp/w1.sock"};
  const ParsedOptions child = parse(engine_arguments(parent.options, 2, 3));
  REQUIRE_FALSE(child.exit_code);
  CHECK(child.options.engine_index == 2U);
  CHECK(child.options.report_fd == 3);
  CHECK(child.options.generate == TraceKind::kRag);
  CHECK(child.options.seed == 9);
  CHECK(child.options.generated_requests == 50);
  CHECK(child.options.limit == 40);
  CHECK(child.options.engines == 3);
  CHECK(child.options.speed == 2.5);
  CHECK(child.options.block_bytes == 8192);
  CHECK(child.options.probe_deadline == milliseconds(250));
  CHECK(child.options.worker_sockets == parent.options.worker_sockets);
}

}  // namespace
}  // namespace berth::replay
