// Sizes and durations: what is accepted, and that everything else is refused with the same words.
#include "common/units.h"

#include <catch2/catch.hpp>
#include <limits>

namespace berth {

TEST_CASE("a size is a whole number with an optional binary unit", "[common][units]") {
  const auto [text, bytes] = GENERATE(table<std::string, uint64_t>({
      {"0", 0},
      {"1", 1},
      {"4096", 4096},
      {"64KiB", 64 * 1024},
      {"3MiB", 3 << 20},
      {"8GiB", uint64_t{8} << 30},
      {"2TiB", uint64_t{2} << 40},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"8388607TiB", uint64_t{8388607} << 40},
  }));
  CAPTURE(text);
  REQUIRE(parse_size("pool.size", text).value() == bytes);
}

TEST_CASE("anything else is not a size, and the error says what would be", "[common][units]") {
  const std::string text = GENERATE(as<std::string>(), "", "8 GB", "1.5g", "1.5G", "-1", "-5", "+1",
                                    "50%", "1e9", "16gb", "16 GiB", "16gib", "GiB", "16GiBx",
                                    "16GiB ", " 16GiB", "0x10", "8GB", "1,000", "10s");
  CAPTURE(text);
  const auto size = parse_size("pool.size", text);
  REQUIRE_FALSE(size.has_value());
  CHECK(size.error().reason == Reason::kInvalidConfig);
  CHECK(size.error().message ==
        "pool.size = \"" + text +
            "\": not a size; accepted: a whole number with KiB, MiB, GiB or TiB, e.g. \"8GiB\"");
}

TEST_CASE("a size of 2^63 bytes or more is too large and never wraps", "[common][units]") {
  const std::string text = GENERATE(as<std::string>(), "9223372036854775808",
                                    "18446744073709551616", "99999999999999999999999999",
                                    "8388608TiB", "16777216TiB", "18446744073709551615TiB");
  CAPTURE(text);
  const auto size = parse_size("pool.size", text);
  REQUIRE_FALSE(size.has_value());
  CHECK(size.error().message ==
        "pool.size = \"" + text + "\": too large; accepted: sizes up to 8388607TiB");
}

TEST_CASE("a duration is a whole number with a unit", "[common][units]") {
  const auto [text, millis] = GENERATE(table<std::string, int64_t>({
      {"0s", 0},
      {"250ms", 250},
      {"10s", 10'000},
      {"5min", 300'000},
      {"2h", 7'200'000},
      {"876000h", int64_t{876'000} * 3'600'000},
  }));
  CAPTURE(text);
  REQUIRE(parse_duration("lease", text).value() == milliseconds(millis));
}

TEST_CASE("a number without a unit is not a duration", "[common][units]") {
  const std::string text = GENERATE(as<std::string>(), "", "0", "10", "10 min", "-1", "-1s",
                                    "1e12h", "1.5s", "10sec", "10S", "s", "10s ");
  CAPTURE(text);
  const auto duration = parse_duration("lease", text);
  REQUIRE_FALSE(duration.has_value());
  CHECK(duration.error().message ==
        "lease = \"" + text +
            "\": not a duration; accepted: a whole number with ms, s, min or h, e.g. \"10s\"");
}

TEST_CASE("a duration beyond a century is refused", "[common][units]") {
  const std::string text = GENERATE(as<std::string>(), "876001h", "1000000000000h",
                                    "18446744073709551616ms", "9223372036854775807h");
  CAPTURE(text);
  const auto duration = parse_duration("lease", text);
  REQUIRE_FALSE(duration.has_value());
  CHECK(duration.error().message ==
        "lease = \"" + text + "\": too long; accepted: durations up to 876000h");
}

TEST_CASE("sizes print for people with at most one decimal", "[common][units]") {
  CHECK(format_size(0) == "0B");
  CHECK(format_size(512) == "512B");
  CHECK(format_size(1024) == "1KiB");
  CHECK(format_size(uint64_t{2} << 30) == "2GiB");
  CHECK(format_size((uint64_t{1} << 30) + (uint64_t{1} << 29)) == "1.5GiB");
  CHECK(format_size(1536 << 10) == "1.5MiB");
}

TEST_CASE("an exact size parses back to itself", "[common][units]") {
  const uint64_t bytes = GENERATE(uint64_t{0}, 1, 1023, 1024, 1536, uint64_t{3} << 30,
                                  (uint64_t{1} << 40) + 1, uint64_t{7} << 40);
  CHECK(parse_size("size", exact_size(bytes)).value() == bytes);
}

TEST_CASE("a formatted duration parses back to itself", "[common][units]") {
  const int64_t millis = GENERATE(0, 1, 999, 1000, 1500, 60'000, 90'000, 3'600'000);
  CHECK(parse_duration("d", format_duration(milliseconds(millis))).value() == milliseconds(millis));
  CHECK(format_duration(milliseconds(90'000)) == "90s");
  CHECK(format_duration(milliseconds(120'000)) == "2min");
}

}  // namespace berth
