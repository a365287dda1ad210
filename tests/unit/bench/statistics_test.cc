#include "tests/bench/rpc/statistics.h"

#include <catch2/catch.hpp>

#include "tests/bench/rpc/low_water.h"
#include "tests/bench/rpc/schedule.h"

namespace berth::bench {

TEST_CASE("a spread has the middle value and both ends, in whatever order they came", "[bench]") {
  const Spread odd = spread_of({5, 1, 3});
  CHECK(odd.median == 3);
  CHECK(odd.low == 1);
  CHECK(odd.high == 5);
  CHECK(spread_of({4, 1, 3, 2}).median == 2.5);
  CHECK(spread_of({}).median == 0);
}

TEST_CASE("ratios are taken run by run, not between medians", "[bench]") {
  const std::vector<double> values{90, 45, 30};
  const std::vector<double> floors{100, 50, 40};
  const Spread ratios = ratios_of(values, floors);
  CHECK(ratios.median == 0.9);
  CHECK(ratios.low == 0.75);
  CHECK(ratios.high == 0.9);
}

TEST_CASE("a run without a floor counts for nothing", "[bench]") {
  const std::vector<double> values{90, 45};
  const std::vector<double> floors{0, 50};
  CHECK(ratios_of(values, floors).low == 0.9);
  CHECK(ratios_of(std::vector<double>{1}, std::vector<double>{0}).median == 0);
}

TEST_CASE("an open loop keeps its rate and repeats itself under the same seed", "[bench]") {
  Schedule schedule(10'000, 7);
  Schedule again(10'000, 7);
  Schedule other(10'000, 8);
  uint64_t last = 0;
  bool is_other = false;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t at = schedule.next();
    CHECK_FALSE(at < last);
    last = at;
    CHECK(again.next() == at);
    is_other = is_other || other.next() != at;
  }
  CHECK(is_other);
  // Ten seconds; the deviation of 100,000 random gaps is a third of a percent.
  CHECK(last > 9'800'000'000u);
  CHECK(last < 10'200'000'000u);
}

TEST_CASE("the low-water mark waits for the oldest operation without an answer", "[bench]") {
  LowWater operations;
  CHECK(operations.take() == 1);
  CHECK(operations.take() == 2);
  CHECK(operations.take() == 3);
  operations.answered(2);
  CHECK(operations.low() == 0);
  operations.answered(1);
  CHECK(operations.low() == 2);
  CHECK(operations.take() == 4);
  operations.answered(4);
  operations.answered(3);
  CHECK(operations.low() == 4);
}

}  // namespace berth::bench
