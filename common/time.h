// Instants and durations of Berth's logical time, in milliseconds. Pure code receives a Time and
// never asks for one; only a Clock (common/clock.h) makes them. Never wall-clock time.
#pragma once

#include <compare>
#include <cstdint>

namespace berth {

struct Duration {
  int64_t millis = 0;
  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.millis + b.millis}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.millis - b.millis}; }
  friend constexpr Duration operator*(Duration a, int64_t k) { return {a.millis * k}; }
};

struct Time {
  int64_t millis = 0;
  friend constexpr auto operator<=>(Time, Time) = default;
  friend constexpr Time operator+(Time t, Duration d) { return {t.millis + d.millis}; }
  friend constexpr Duration operator-(Time a, Time b) { return {a.millis - b.millis}; }
};

constexpr Duration milliseconds(int64_t n) { return {n}; }
constexpr Duration seconds(int64_t n) { return {n * 1000}; }

}  // namespace berth
