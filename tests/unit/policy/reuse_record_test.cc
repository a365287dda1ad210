#include "server/policy/reuse_record.h"

#include <catch2/catch.hpp>

namespace berth::policy {
namespace {

// One chunk of class 0 joins with every request; each tenth is used again at `age`. Counted from
// the 1024th request on, when there are chunks of every age.
ReuseRecord steady(uint64_t requests, uint64_t age) {
  ReuseRecord record;
  for (uint64_t now = 1; now <= requests; ++now) {
    record.joined(0, now);
    if (now % 10 == 0) record.reused(0, age);
    if (now % 64 == 0) record.advance(now);
    if (now == 1024) record.fade(0);
  }
  record.advance(requests);
  return record;
}

TEST_CASE("reuses count as hits if the pool holds chunks up to their age", "[policy][reuse]") {
  const ReuseRecord record = steady(4096, 500);
  const ReuseRecord::Credits none{};
  CHECK(record.hits_with(none, 1000) == Approx(record.reuses()));
  CHECK(record.hits_with(none, 300) == 0);
}

TEST_CASE("reuses count by how many chunks of their age there are now", "[policy][reuse]") {
  ReuseRecord record = steady(4096, 100);
  // Five times as many from now on.
  for (uint64_t now = 4097; now <= 4352; ++now)
    for (int i = 0; i < 5; ++i) record.joined(0, now);
  const double counted = record.reuses();
  record.advance(4352);
  CHECK(record.hits_with({}, 4000) == Approx(5 * counted).epsilon(0.1));
}

TEST_CASE("a credit lets chunks of one class stay at the cost of others", "[policy][reuse]") {
  ReuseRecord record;
  for (uint64_t now = 1; now <= 4096; ++now) {
    record.joined(now % 2, now);
    if (now == 2000) record.fade(0);
    if (now > 2000) record.reused(1, 1500);
    if (now % 64 == 0) record.advance(now);
  }
  ReuseRecord::Credits credits{};
  CHECK(record.hits_with(credits, 1000) == 0);
  credits[1] = 1600;
  CHECK(record.hits_with(credits, 1000) == Approx(record.reuses()));
}

TEST_CASE("nothing of a class that goes last stays while others need the room", "[policy][reuse]") {
  ReuseRecord record;
  for (uint64_t now = 1; now <= 1024; ++now) {
    record.joined(now % 2, now);
    record.reused(now % 2, 10);
  }
  record.advance(1024);
  ReuseRecord::Credits credits{};
  credits[0] = ReuseRecord::kLast;
  CHECK(record.hits_with(credits, 100) == Approx(record.reuses() / 2));
  CHECK(record.hits_with(credits, 2000) == Approx(record.reuses()));
}

TEST_CASE("the record stays right over any span of time, at the same size", "[policy][reuse]") {
  // Every chunk leaves 100,000 requests after it came: the population is 100,000 whatever the bins.
  ReuseRecord record;
  constexpr uint64_t kStay = 100'000;
  for (uint64_t now = 1; now <= 10 * kStay; ++now) {
    record.joined(0, now);
    if (now > kStay) record.left(0, now - kStay);
    if (now % 1000 == 0) record.advance(now);
  }
  record.reused(0, 49'000);
  CHECK(record.hits_with({}, 52'000) == Approx(1).margin(0.2));
  CHECK(record.hits_with({}, 30'000) == 0);
}

TEST_CASE("old reuses fade", "[policy][reuse]") {
  ReuseRecord record;
  record.reused(3, 100);
  record.fade(0.5);
  record.reused(3, 100);
  CHECK(record.reuses() == Approx(1.5));
}

}  // namespace
}  // namespace berth::policy
