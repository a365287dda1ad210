#include "common/clock.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

namespace berth {
namespace {

int64_t read_nanos(clockid_t id) {
  timespec ts{};
  clock_gettime(id, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace

int64_t SteadyClock::monotonic_nanos() const { return read_nanos(CLOCK_MONOTONIC); }

int64_t wall_clock_millis() { return read_nanos(CLOCK_REALTIME) / 1'000'000; }

std::string wall_clock_text(int64_t wall_millis) {
  const time_t seconds = wall_millis / 1000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
  char text[48];
  std::snprintf(text, sizeof text, "%s.%03dZ", date, static_cast<int>(wall_millis % 1000));
  return text;
}

Time LogicalClock::advance(int64_t monotonic_millis) {
  const Duration passed =
      has_base_ ? Duration{std::max<int64_t>(monotonic_millis - last_millis_, 0)} : Duration{0};
  const Duration step = std::min(passed, step_max_);
  last_millis_ = has_base_ ? std::max(last_millis_, monotonic_millis) : monotonic_millis;
  has_base_ = true;
  stall_ = passed - step;
  stall_total_ = stall_total_ + stall_;
  now_ = now_ + step;
  return now_;
}

}  // namespace berth
