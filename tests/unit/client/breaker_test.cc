// The circuit breaker with time and chance passed in.
#include "worker/client/breaker.h"

#include <catch2/catch.hpp>

namespace berth::client {
namespace {

using Admission = Breaker::Admission;

constexpr BreakerOptions kOptions{
    .failures_max = 3, .open_for_min = milliseconds(100), .open_for_max = milliseconds(300)};
constexpr double kLatest = 1.0;    // the whole of the open time
constexpr double kEarliest = 0.0;  // half of it

Breaker opened_at(Time now, double chance = kLatest) {
  Breaker breaker(kOptions);
  for (uint32_t i = 0; i < kOptions.failures_max; ++i)
    breaker.failed(breaker.admit(now), now, chance);
  return breaker;
}

TEST_CASE("a breaker opens at the third failure in a row and not before", "[client][breaker]") {
  Breaker breaker(kOptions);
  breaker.failed(breaker.admit(Time{0}), Time{0}, kLatest);
  breaker.failed(breaker.admit(Time{0}), Time{0}, kLatest);
  CHECK_FALSE(breaker.is_open());
  breaker.failed(breaker.admit(Time{0}), Time{0}, kLatest);
  CHECK(breaker.is_open());
  CHECK(breaker.opened_count() == 1);
  CHECK(breaker.admit(Time{0}) == Admission::kRefuse);
}

TEST_CASE("an answer between failures starts the count again", "[client][breaker]") {
  Breaker breaker(kOptions);
  for (int round = 0; round < 5; ++round) {
    breaker.failed(breaker.admit(Time{0}), Time{0}, kLatest);
    breaker.failed(breaker.admit(Time{0}), Time{0}, kLatest);
    breaker.succeeded();
  }
  CHECK_FALSE(breaker.is_open());
}

TEST_CASE("an open breaker lets exactly one trial through when its time is over",
          "[client][breaker]") {
  Breaker breaker = opened_at(Time{1000});
  CHECK(breaker.admit(Time{1099}) == Admission::kRefuse);
  CHECK(breaker.admit(Time{1100}) == Admission::kTrial);
  CHECK(breaker.admit(Time{1100}) == Admission::kRefuse);
  breaker.succeeded();
  CHECK(breaker.admit(Time{1100}) == Admission::kPass);
}

TEST_CASE("each failed trial doubles the open time up to its bound", "[client][breaker]") {
  Breaker breaker = opened_at(Time{0});
  REQUIRE(breaker.admit(Time{100}) == Admission::kTrial);
  breaker.failed(Admission::kTrial, Time{100}, kLatest);
  CHECK(breaker.admit(Time{299}) == Admission::kRefuse);
  REQUIRE(breaker.admit(Time{300}) == Admission::kTrial);
  breaker.failed(Admission::kTrial, Time{300}, kLatest);
  CHECK(breaker.admit(Time{599}) == Admission::kRefuse);
  CHECK(breaker.admit(Time{600}) == Admission::kTrial);
  CHECK(breaker.opened_count() == 1);
}

TEST_CASE("chance moves a trial forward by at most half of the open time", "[client][breaker]") {
  Breaker breaker = opened_at(Time{0}, kEarliest);
  CHECK(breaker.admit(Time{49}) == Admission::kRefuse);
  CHECK(breaker.admit(Time{50}) == Admission::kTrial);
}

TEST_CASE("failures of calls sent before the breaker opened do not prolong it",
          "[client][breaker]") {
  Breaker breaker(kOptions);
  const Admission late = breaker.admit(Time{0});
  for (int i = 0; i < 3; ++i) breaker.failed(breaker.admit(Time{0}), Time{0}, kLatest);
  breaker.failed(late, Time{90}, kLatest);
  CHECK(breaker.admit(Time{100}) == Admission::kTrial);
}

TEST_CASE("a success after an outage resets the open time to its smallest", "[client][breaker]") {
  Breaker breaker = opened_at(Time{0});
  breaker.failed(breaker.admit(Time{100}), Time{100}, kLatest);
  REQUIRE(breaker.admit(Time{300}) == Admission::kTrial);
  breaker.succeeded();
  for (int i = 0; i < 3; ++i) breaker.failed(breaker.admit(Time{400}), Time{400}, kLatest);
  CHECK(breaker.opened_count() == 2);
  CHECK(breaker.admit(Time{500}) == Admission::kTrial);
}

}  // namespace
}  // namespace berth::client
