#include "tests/bench/rpc/trace_source.h"

#include <catch2/catch.hpp>

#include "worker/replay/content.h"
#include "worker/replay/generate.h"

namespace berth::bench {
namespace {

std::string digest_at(const std::string& digests, size_t chunk) {
  return digests.substr(chunk * replay::kDigestBytes, replay::kDigestBytes);
}

std::vector<replay::Request> two_requests() {
  return {{.hash_ids = {1, 2, 3}}, {.hash_ids = {1, 2, 4, 5}}};
}

}  // namespace

TEST_CASE("requests of one lap share what their chains share", "[bench]") {
  TraceSource source(two_requests(), 1, 100);
  std::string first;
  std::string second;
  source.next(0, first);
  source.next(0, second);
  CHECK(first.size() == 3 * replay::kDigestBytes);
  CHECK(second.size() == 4 * replay::kDigestBytes);
  CHECK(digest_at(first, 1) == digest_at(second, 1));
  CHECK(digest_at(first, 2) != digest_at(second, 2));
  CHECK(source.requests() == 2);
  CHECK(source.mean_chunks() == 3.5);
}

TEST_CASE("laps and new starts share nothing", "[bench]") {
  TraceSource source(two_requests(), 1, 100);
  std::string first;
  std::string later;
  source.next(0, first);
  source.next(0, later);
  source.next(0, later);
  CHECK(later.size() == first.size());
  CHECK(digest_at(later, 0) != digest_at(first, 0));
  source.start_over();
  std::string again;
  source.next(0, again);
  CHECK(again.size() == first.size());
  CHECK(digest_at(again, 0) != digest_at(first, 0));
  CHECK(digest_at(again, 0) != digest_at(later, 0));
}

TEST_CASE("long requests are cut, and a member without any is given another's", "[bench]") {
  TraceSource source(two_requests(), 3, 2);
  std::string digests;
  for (uint64_t member = 0; member < 3; ++member) {
    source.next(member, digests);
    CHECK(digests.size() == 2 * replay::kDigestBytes);
  }
}

TEST_CASE("a generated trace goes to every member", "[bench]") {
  const auto requests = replay::generate_trace(replay::TraceKind::kChat, 1, 500);
  TraceSource source(requests, 4, 4096);
  TraceSource again(requests, 4, 4096);
  std::string digests;
  std::string same;
  for (uint64_t i = 0; i < 2000; ++i) {
    source.next(i % 4, digests);
    again.next(i % 4, same);
    CHECK(digests == same);
  }
}

}  // namespace berth::bench
