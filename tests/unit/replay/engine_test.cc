// What an engine counts, against a cache in memory and against a plain model of prefix hits.
#include "worker/replay/engine.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "tests/unit/replay/memory_cache.h"
#include "worker/replay/generate.h"
#include "worker/replay/router.h"

namespace berth::replay {
namespace {

using testing::MemoryCache;

Request request_of(std::vector<uint64_t> hash_ids) {
  Request request;
  request.hash_ids = std::move(hash_ids);
  return request;
}

Counts replay_all(const std::vector<Request>& requests, MemoryCache& cache) {
  const SteadyClock clock;
  Engine engine(cache, clock);
  for (const Request& request : requests) engine.serve(request);
  return engine.counts();
}

// Hits of an unbounded cache by definition: blocks of the longest prefix that any earlier request
// had. Written without digests, so that it shares nothing with the engine.
uint64_t count_hits_by_definition(const std::vector<Request>& requests) {
  std::set<std::vector<uint64_t>> seen;
  uint64_t hits = 0;
  for (const Request& request : requests) {
    std::vector<uint64_t> prefix;
    bool is_hit = true;
    for (const uint64_t id : request.hash_ids) {
      prefix.push_back(id);
      is_hit = is_hit && seen.contains(prefix);
      hits += is_hit ? 1 : 0;
    }
    for (prefix.clear(); prefix.size() < request.hash_ids.size();) {
      prefix.push_back(request.hash_ids[prefix.size()]);
      seen.insert(prefix);
    }
  }
  return hits;
}

TEST_CASE("a request hits up to its first missing block and stores the rest", "[replay][engine]") {
  MemoryCache cache(64);
  const Counts counts =
      replay_all({request_of({1, 2, 3}), request_of({1, 2, 9, 3}), request_of({2, 3})}, cache);
  CHECK(counts.requests == 3);
  CHECK(counts.blocks == 9);
  CHECK(counts.prefix_hits == 2);
  CHECK(counts.stored == 7);
  CHECK(counts.verify_errors == 0);
  CHECK(counts.probe_micros.size() == 3);
}

TEST_CASE("a wrong byte is a verify error and no hit", "[replay][engine]") {
  MemoryCache cache(64);
  const std::vector<Request> requests{request_of({1, 2, 3})};
  replay_all(requests, cache);
  cache.flip_a_bit(digest_chain(requests[0].hash_ids)[1], 63);
  const Counts counts = replay_all(requests, cache);
  CHECK(counts.verify_errors == 1);
  CHECK(counts.prefix_hits == 1);
}

TEST_CASE("blocks that the probe promised and the load lost are misses and are asked for again",
          "[replay][engine]") {
  MemoryCache cache(64);
  const std::vector<Request> requests{request_of({1, 2, 3})};
  replay_all(requests, cache);
  cache.loses_after_probe = true;
  cache.lost_at = 1;
  const Counts counts = replay_all(requests, cache);
  CHECK(counts.prefix_hits == 1);
  CHECK(counts.load_fallbacks == 2);
  CHECK(counts.already_present == 2);
}

TEST_CASE("a request during an outage is a miss, counted, and no error", "[replay][engine]") {
  MemoryCache cache(64);
  cache.is_down = true;
  const Counts counts = replay_all({request_of({1, 2, 3})}, cache);
  CHECK(counts.requests == 1);
  CHECK(counts.misses_unavailable == 1);
  CHECK(counts.skipped == 3);
  CHECK(counts.load_errors == 0);
}

TEST_CASE("a full cache skips and keeps the hits it has", "[replay][engine]") {
  MemoryCache cache(64, 2);
  const Counts counts = replay_all({request_of({1, 2, 3}), request_of({1, 2, 3})}, cache);
  CHECK(counts.stored == 2);
  CHECK(counts.skipped == 2);
  CHECK(counts.prefix_hits == 2);
}

TEST_CASE("an engine counts the hits of generated traces as the definition does",
          "[replay][engine]") {
  for (const TraceKind kind : {TraceKind::kChat, TraceKind::kRag, TraceKind::kAgents}) {
    for (const uint64_t seed : {1U, 2U, 3U}) {
      const std::vector<Request> requests = generate_trace(kind, seed, 300);
      MemoryCache cache(8);
      const Counts counts = replay_all(requests, cache);
      CHECK(counts.prefix_hits == count_hits_by_definition(requests));
      CHECK(counts.prefix_hits + counts.stored == counts.blocks);
      CHECK(counts.blocks == count_blocks(requests));
    }
  }
}

// The recorded traces are not part of this tree; where they lie beside it, their known figures must
// come out.
TEST_CASE("an engine with unbounded memory has the known hits of the recorded traces",
          "[replay][engine][traces]") {
  struct Row {
    const char* file;
    uint64_t hits;
    uint64_t blocks;
  };
  const auto directory = std::filesystem::path(BERTH_SOURCE_DIR) / "../shared/traces";
  for (const Row& row : {Row{"conversation_trace.jsonl", 105710, 288500},
                         Row{"synthetic_trace.jsonl", 77953, 121877}}) {
    const std::string path = (directory / row.file).string();
    if (!std::filesystem::exists(path)) {
      WARN(path << " is not here: only generated traces were checked");
      continue;
    }
    const auto requests = read_trace(path, 0);
    REQUIRE(requests);
    MemoryCache cache(8);
    const Counts counts = replay_all(*requests, cache);
    CHECK(counts.prefix_hits == row.hits);
    CHECK(counts.blocks == row.blocks);
    CHECK(counts.verify_errors == 0);
  }
}

TEST_CASE("routing by prefix keeps nearly every hit and round-robin loses many",
          "[replay][router]") {
  const std::vector<Request> requests = generate_trace(TraceKind::kChat, 7, 600);
  const uint64_t all = count_hits_by_definition(requests);
  const auto hits_when_routed = [&](Routing routing) {
    const std::vector<uint32_t> engine_of = route(requests, 4, routing);
    uint64_t hits = 0;
    for (uint32_t engine = 0; engine < 4; ++engine) {
      std::vector<Request> share;
      for (size_t i = 0; i < requests.size(); ++i)
        if (engine_of[i] == engine) share.push_back(requests[i]);
      CHECK_FALSE(share.empty());
      hits += count_hits_by_definition(share);
    }
    return hits;
  };
  CHECK(hits_when_routed(Routing::kPrefix) * 100 >= all * 90);
  CHECK(hits_when_routed(Routing::kRoundRobin) < hits_when_routed(Routing::kPrefix));
}

}  // namespace
}  // namespace berth::replay
