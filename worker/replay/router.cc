#include "worker/replay/router.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "worker/replay/content.h"

namespace berth::replay {
namespace {

constexpr size_t kPrefixShareMin = 10;  // one block in so many

uint64_t short_name(const Digest& digest) {
  uint64_t word;
  std::memcpy(&word, digest.data(), sizeof word);
  return word;
}

std::vector<uint32_t> route_by_prefix(const std::vector<Request>& requests, uint32_t engine_count) {
  std::unordered_map<uint64_t, uint32_t> engine_of_block;
  std::vector<uint64_t> blocks_given(engine_count, 0);
  std::vector<uint32_t> engines;
  for (const Request& request : requests) {
    const std::vector<Digest> chain = digest_chain(request.hash_ids);
    auto engine = static_cast<uint32_t>(std::min_element(blocks_given.begin(), blocks_given.end()) -
                                        blocks_given.begin());
    size_t known = 0;
    uint32_t last = engine;
    for (; known < chain.size(); ++known) {
      const auto found = engine_of_block.find(short_name(chain[known]));
      if (found == engine_of_block.end()) break;
      last = found->second;
    }
    if (known > 0 && known * kPrefixShareMin >= chain.size()) engine = last;
    for (const Digest& digest : chain) engine_of_block[short_name(digest)] = engine;
    blocks_given[engine] += chain.size();
    engines.push_back(engine);
  }
  return engines;
}

}  // namespace

Result<Routing> parse_routing(std::string_view text) {
  if (text == "prefix") return Routing::kPrefix;
  if (text == "round-robin") return Routing::kRoundRobin;
  return refuse(Reason::kInvalidArgument,
                "--routing " + std::string(text) + ": accepted are prefix and round-robin");
}

std::vector<uint32_t> route(const std::vector<Request>& requests, uint32_t engine_count,
                            Routing routing) {
  if (routing == Routing::kPrefix) return route_by_prefix(requests, engine_count);
  std::vector<uint32_t> engines(requests.size());
  for (size_t i = 0; i < engines.size(); ++i) engines[i] = static_cast<uint32_t>(i % engine_count);
  return engines;
}

}  // namespace berth::replay
