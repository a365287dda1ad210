#include <cstdint>
#include <cstdio>

#include "common/clock.h"
#include "common/text.h"
#include "common/units.h"
#include "server/ctl/render.h"

namespace berth::ctl {
namespace {

constexpr std::string_view kNoValue = "-";

bool is_printable(char c) { return c >= 0x20 && c < 0x7f; }

// Escapes what a terminal might obey or misplace. A backslash alone stays: it harms nothing, and
// paths and reasons read better.
std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (is_printable(c)) {
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(c));
      result += escaped;
    }
  }
  return result;
}

// Two or three digits and a unit: people compare ages at a glance; the exact number is in CSV and
// JSON.
std::string brief_duration(int64_t millis) {
  struct Step {
    uint64_t below;
    double factor;
    const char* unit;
  };
  constexpr Step kSteps[] = {{1'000, 1, "ms"},
                             {120'000, 1'000, "s"},
                             {7'200'000, 60'000, "min"},
                             {172'800'000, 3'600'000, "h"},
                             {UINT64_MAX, 86'400'000, "d"}};
  const bool negative = millis < 0;
  const uint64_t magnitude =
      negative ? 0 - static_cast<uint64_t>(millis) : static_cast<uint64_t>(millis);
  const Step* step = kSteps;
  while (magnitude >= step->below && step->below != UINT64_MAX) ++step;
  char text[48];
  const double scaled = static_cast<double>(magnitude) / step->factor;
  std::snprintf(text, sizeof text, step->factor > 1 && scaled < 10 ? "%s%.1f%s" : "%s%.0f%s",
                negative ? "-" : "", scaled, step->unit);
  return text;
}

std::string joined(const std::vector<std::string>& items, char separator) {
  std::string result;
  for (const std::string& item : items) {
    if (!result.empty()) result += separator;
    result += item;
  }
  return result;
}

// A number whichever way it is signed.
int64_t signed_of(const Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return static_cast<int64_t>(*number);
  return std::get<int64_t>(value);
}

std::string number_text(const Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return std::to_string(*number);
  return std::to_string(std::get<int64_t>(value));
}

bool is_none(const Column& column, const Value& value) {
  if (std::holds_alternative<std::monostate>(value)) return true;
  return column.kind == Kind::kId && std::get<uint64_t>(value) == 0;
}

}  // namespace

std::string data_text(const Column& column, const Value& value) {
  if (is_none(column, value)) return "";
  switch (column.kind) {
    case Kind::kText:
    case Kind::kWord:
      return std::get<std::string>(value);
    case Kind::kId:
      return id_text(std::get<uint64_t>(value));
    case Kind::kHex:
      return to_hex(std::get<std::string>(value));
    case Kind::kCount:
    case Kind::kBytes:
    case Kind::kMillis:
    case Kind::kUnixMillis:
      return number_text(value);
    case Kind::kFlag:
      return std::get<bool>(value) ? "true" : "false";
    case Kind::kList:
      return joined(std::get<std::vector<std::string>>(value), ' ');
  }
  return "";
}

std::string table_text(const Column& column, const Value& value) {
  if (is_none(column, value)) return std::string(kNoValue);
  switch (column.kind) {
    case Kind::kBytes:
      return format_size(std::get<uint64_t>(value));
    case Kind::kMillis:
      return brief_duration(signed_of(value));
    case Kind::kUnixMillis:
      return wall_clock_text(signed_of(value));
    case Kind::kFlag:
      return std::get<bool>(value) ? "yes" : "no";
    default: {
      std::string text = printable(data_text(column, value));
      return text.empty() ? std::string(kNoValue) : text;
    }
  }
}

}  // namespace berth::ctl
