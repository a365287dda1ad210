#include "common/units.h"

#include <array>
#include <cstdio>
#include <limits>
#include <optional>

#include "common/text.h"

namespace berth {
namespace {

struct Unit {
  std::string_view suffix;
  uint64_t factor;
};

// Largest first: formatting takes the first that fits.
constexpr std::array kSizeUnits{
    Unit{"TiB", uint64_t{1} << 40},
    Unit{"GiB", uint64_t{1} << 30},
    Unit{"MiB", uint64_t{1} << 20},
    Unit{"KiB", uint64_t{1} << 10},
};
constexpr std::array kDurationUnits{
    Unit{"h", 3600 * 1000},
    Unit{"min", 60 * 1000},
    Unit{"s", 1000},
    Unit{"ms", 1},
};

// Sizes travel as signed numbers in other tools and in JSON, so the upper half is never accepted.
constexpr uint64_t kSizeMax = std::numeric_limits<int64_t>::max();
// A century. Far beyond any use, and small enough that Time + Duration cannot overflow.
constexpr uint64_t kDurationMax = uint64_t{876'000} * 3600 * 1000;

struct Quantity {
  uint64_t number = 0;
  bool overflow = false;
  std::string_view suffix;
};

// Splits "64KiB" into 64 and "KiB"; nothing when it does not begin with a digit.
std::optional<Quantity> split_quantity(std::string_view text) {
  Quantity quantity;
  size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    const auto digit = static_cast<uint64_t>(text[digits] - '0');
    quantity.overflow |= __builtin_mul_overflow(quantity.number, 10, &quantity.number);
    quantity.overflow |= __builtin_add_overflow(quantity.number, digit, &quantity.number);
  }
  if (digits == 0) return std::nullopt;
  quantity.suffix = text.substr(digits);
  return quantity;
}

template <size_t N>
std::optional<uint64_t> factor_of(std::string_view suffix, const std::array<Unit, N>& units) {
  for (const Unit& unit : units)
    if (unit.suffix == suffix) return unit.factor;
  return std::nullopt;
}

// The product, or nothing when it is above `largest`.
std::optional<uint64_t> scaled(const Quantity& quantity, uint64_t factor, uint64_t largest) {
  uint64_t product = 0;
  if (quantity.overflow || __builtin_mul_overflow(quantity.number, factor, &product) ||
      product > largest)
    return std::nullopt;
  return product;
}

tl::unexpected<Error> refuse_value(std::string_view name, std::string_view text,
                                   std::string_view why) {
  return refuse(Reason::kInvalidConfig, name_and_value(name, text) + ": " + std::string(why));
}

}  // namespace

Result<uint64_t> parse_size(std::string_view name, std::string_view text) {
  const auto quantity = split_quantity(text);
  const auto factor = !quantity                  ? std::nullopt
                      : quantity->suffix.empty() ? std::optional<uint64_t>(1)
                                                 : factor_of(quantity->suffix, kSizeUnits);
  if (!factor)
    return refuse_value(
        name, text,
        "not a size; accepted: a whole number with KiB, MiB, GiB or TiB, e.g. \"8GiB\"");
  if (const auto bytes = scaled(*quantity, *factor, kSizeMax)) return *bytes;
  return refuse_value(name, text, "too large; accepted: sizes up to 8388607TiB");
}

Result<Duration> parse_duration(std::string_view name, std::string_view text) {
  const auto quantity = split_quantity(text);
  const auto factor = quantity ? factor_of(quantity->suffix, kDurationUnits) : std::nullopt;
  if (!factor)
    return refuse_value(
        name, text, "not a duration; accepted: a whole number with ms, s, min or h, e.g. \"10s\"");
  if (const auto millis = scaled(*quantity, *factor, kDurationMax))
    return Duration{static_cast<int64_t>(*millis)};
  return refuse_value(name, text, "too long; accepted: durations up to 876000h");
}

std::string format_size(uint64_t bytes) {
  for (const Unit& unit : kSizeUnits) {
    if (bytes < unit.factor) continue;
    if (bytes % unit.factor == 0) return exact_size(bytes);
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%s",
                  static_cast<double>(bytes) / static_cast<double>(unit.factor),
                  unit.suffix.data());
    return text;
  }
  return std::to_string(bytes) + "B";
}

std::string exact_size(uint64_t bytes) {
  for (const Unit& unit : kSizeUnits)
    if (bytes != 0 && bytes % unit.factor == 0)
      return std::to_string(bytes / unit.factor) + std::string(unit.suffix);
  return std::to_string(bytes);
}

std::string format_duration(Duration duration) {
  const int64_t millis = duration.millis;
  for (const Unit& unit : kDurationUnits) {
    const auto factor = static_cast<int64_t>(unit.factor);
    if (millis != 0 && millis % factor == 0)
      return std::to_string(millis / factor) + std::string(unit.suffix);
  }
  return std::to_string(millis) + "ms";
}

}  // namespace berth
