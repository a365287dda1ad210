#include "tests/bench/rpc/histogram.h"

#include <catch2/catch.hpp>

namespace berth::bench {

TEST_CASE("an empty histogram says zero", "[bench]") {
  const Histogram histogram;
  CHECK(histogram.percentile(99) == 0);
  CHECK(histogram.max() == 0);
}

TEST_CASE("small durations are counted exactly", "[bench]") {
  Histogram histogram;
  for (uint64_t nanos = 1; nanos <= 100; ++nanos) histogram.record(nanos);
  CHECK(histogram.percentile(0) == 1);
  CHECK(histogram.percentile(50) == 50);
  CHECK(histogram.percentile(99) == 99);
  CHECK(histogram.percentile(99.9) == 100);
  CHECK(histogram.percentile(100) == 100);
}

TEST_CASE("a percentile is never below what was recorded, and at most a 64th above", "[bench]") {
  for (uint64_t nanos = 1; nanos < uint64_t{1} << 62; nanos = nanos * 3 + 1) {
    Histogram histogram;
    histogram.record(nanos);
    histogram.record(UINT64_MAX);
    const uint64_t said = histogram.percentile(50);
    CHECK(said >= nanos);
    CHECK(said - nanos <= nanos / 64);
    CHECK(histogram.percentile(100) == UINT64_MAX);
  }
}

TEST_CASE("histograms put together hold what both held", "[bench]") {
  Histogram one;
  Histogram other;
  for (uint64_t i = 0; i < 90; ++i) one.record(10);
  for (uint64_t i = 0; i < 10; ++i) other.record(100);
  one.add(other);
  CHECK(one.count() == 100);
  CHECK(one.percentile(90) == 10);
  CHECK(one.percentile(91) == 100);
  one.clear();
  CHECK(one.count() == 0);
  CHECK(one.max() == 0);
}

}  // namespace berth::bench
