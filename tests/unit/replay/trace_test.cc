// Reading traces, and making them.
#include "worker/replay/trace.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/unit/common/temporary_directory.h"
#include "worker/replay/generate.h"

namespace berth::replay {
namespace {

using berth::testing::TemporaryDirectory;

Result<std::vector<Request>> read_text(const std::string& text, size_t requests_max = 0) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/trace.jsonl";
  std::ofstream(path) << text;
  return read_trace(path, requests_max);
}

constexpr const char* kTwo =
    R"({"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [0, 1]})"
    "\n"
    R"({"timestamp": 27, "input_length": 1500, "output_length": 6, "hash_ids": [0, 1, 46]})"
    "\n";

TEST_CASE("a trace is read in order, and a limit cuts it", "[replay][trace]") {
  const auto requests = read_text(kTwo);
  REQUIRE(requests);
  REQUIRE(requests->size() == 2);
  CHECK((*requests)[1].timestamp_ms == 27);
  CHECK((*requests)[1].input_length == 1500);
  CHECK((*requests)[1].output_length == 6);
  CHECK((*requests)[1].hash_ids == std::vector<uint64_t>{0, 1, 46});
  CHECK(count_blocks(*requests) == 5);
  CHECK(read_text(kTwo, 1)->size() == 1);
}

TEST_CASE("a trace that is not one names the line and the accepted form", "[replay][trace]") {
  for (const char* wrong :
       {"", "nonsense\n", "[1, 2]\n", R"({"timestamp": 0})",
        R"({"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": []})",
        R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": 7})",
        R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [-4]})",
        R"({"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1.5]})"}) {
    const auto requests = read_text(wrong);
    REQUIRE_FALSE(requests);
    CHECK(requests.error().reason == Reason::kInvalidArgument);
    CHECK(requests.error().message.find("trace.jsonl:1: ") != std::string::npos);
  }
  const auto missing = read_trace("/nonexistent/trace.jsonl", 0);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("/nonexistent/trace.jsonl") != std::string::npos);
}

TEST_CASE("a generated trace depends on kind, seed and length and on nothing else",
          "[replay][trace]") {
  const auto ids_of = [](const std::vector<Request>& requests) {
    std::vector<std::vector<uint64_t>> ids;
    for (const Request& request : requests) ids.push_back(request.hash_ids);
    return ids;
  };
  for (const TraceKind kind : {TraceKind::kChat, TraceKind::kRag, TraceKind::kAgents}) {
    const auto requests = generate_trace(kind, 42, 200);
    CHECK(requests.size() == 200);
    CHECK(ids_of(requests) == ids_of(generate_trace(kind, 42, 200)));
    CHECK(ids_of(requests) != ids_of(generate_trace(kind, 43, 200)));
    for (size_t i = 1; i < requests.size(); ++i)
      CHECK(requests[i - 1].timestamp_ms <= requests[i].timestamp_ms);
    for (const Request& request : requests) CHECK_FALSE(request.hash_ids.empty());
  }
  CHECK_FALSE(parse_trace_kind("Chat"));
}

}  // namespace
}  // namespace berth::replay
