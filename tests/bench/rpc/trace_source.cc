#include "tests/bench/rpc/trace_source.h"

#include <algorithm>
#include <cstring>

#include "common/check.h"
#include "worker/replay/content.h"
#include "worker/replay/router.h"

namespace berth::bench {
namespace {

std::string bytes_of(const std::vector<replay::Digest>& chain) {
  std::string bytes(chain.size() * replay::kDigestBytes, '\0');
  for (size_t i = 0; i < chain.size(); ++i)
    std::memcpy(bytes.data() + i * replay::kDigestBytes, chain[i].data(), replay::kDigestBytes);
  return bytes;
}

}  // namespace

TraceSource::TraceSource(const std::vector<replay::Request>& requests, uint64_t members,
                         uint64_t chunks_max)
    : shares_(members) {
  const auto count = static_cast<uint32_t>(members);
  const std::vector<uint32_t> member_of = replay::route(requests, count, replay::Routing::kPrefix);
  uint64_t chunks = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<uint64_t> ids = requests[i].hash_ids;
    if (ids.empty()) continue;
    ids.resize(std::min<size_t>(ids.size(), chunks_max));
    chunks += ids.size();
    ++requests_;
    shares_[member_of[i]].chains.push_back(bytes_of(replay::digest_chain(ids)));
  }
  BERTH_CHECK(requests_ > 0, "a trace has a request with a chunk");
  mean_chunks_ = static_cast<double>(chunks) / static_cast<double>(requests_);
}

void TraceSource::next(uint64_t member, std::string& digests) {
  for (; shares_[member].chains.empty(); member = (member + 1) % shares_.size()) {
  }
  Share& share = shares_[member];
  const uint64_t lap = share.given / share.chains.size();
  digests = share.chains[share.given++ % share.chains.size()];
  const uint64_t salt = replay::mix64((starts_ << 32) + lap);
  for (size_t at = 0; at < digests.size(); at += replay::kDigestBytes) {
    uint64_t word = 0;
    std::memcpy(&word, digests.data() + at, sizeof word);
    word ^= salt;
    std::memcpy(digests.data() + at, &word, sizeof word);
  }
}

void TraceSource::start_over() {
  ++starts_;
  for (Share& share : shares_) share.given = 0;
}

}  // namespace berth::bench
