// Logical time: moves with the monotonic clock, swallows stalls, never goes back.
#include "common/clock.h"

#include <catch2/catch.hpp>

#include "tests/unit/common/fake_clock.h"

namespace berth {

TEST_CASE("logical time starts where it was persisted and follows the differences",
          "[common][clock]") {
  LogicalClock clock(Time{500}, milliseconds(100));
  CHECK(clock.advance(1000) == Time{500});
  CHECK(clock.advance(1010) == Time{510});
  CHECK(clock.advance(1020) == Time{520});
  CHECK(clock.stall_total() == milliseconds(0));
}

TEST_CASE("a stall moves logical time by one step and is reported once", "[common][clock]") {
  LogicalClock clock(Time{500}, milliseconds(100));
  clock.advance(1000);
  clock.advance(1020);
  CHECK(clock.advance(31020) == Time{620});
  CHECK(clock.stall() == milliseconds(29'900));
  CHECK(clock.advance(31030) == Time{630});
  CHECK(clock.stall() == milliseconds(0));
  CHECK(clock.stall_total() == milliseconds(29'900));
}

TEST_CASE("a reading that goes back does not move logical time, nor is the way back counted twice",
          "[common][clock]") {
  LogicalClock clock(Time{0}, milliseconds(100));
  clock.advance(1000);
  CHECK(clock.advance(1050) == Time{50});
  CHECK(clock.advance(1020) == Time{50});
  CHECK(clock.advance(1060) == Time{60});
}

TEST_CASE("the first reading after a reboot continues from the persisted time", "[common][clock]") {
  LogicalClock before(Time{0}, milliseconds(100));
  before.advance(9'000'000);
  before.advance(9'000'080);
  LogicalClock after(before.now(), milliseconds(100));
  CHECK(after.advance(12) == Time{80});
  CHECK(after.advance(20) == Time{88});
}

TEST_CASE("the steady clock does not go back", "[common][clock]") {
  const SteadyClock clock;
  const int64_t first = clock.monotonic_nanos();
  CHECK(first > 0);
  CHECK(clock.monotonic_nanos() >= first);
}

TEST_CASE("a fake clock moves only when told", "[common][clock]") {
  testing::FakeClock clock(5);
  CHECK(clock.monotonic_millis() == 5);
  clock.advance(seconds(2));
  CHECK(clock.monotonic_millis() == 2005);
}

TEST_CASE("wall-clock time prints as UTC with milliseconds", "[common][clock]") {
  CHECK(wall_clock_text(0) == "1970-01-01T00:00:00.000Z");
  CHECK(wall_clock_text(1'769'860'800'250) == "2026-01-31T12:00:00.250Z");
  CHECK(wall_clock_millis() > 1'600'000'000'000);
}

}  // namespace berth
