#include "server/ctl/percent.h"

#include <charconv>

#include "common/text.h"

namespace berth::ctl {
namespace {

// Only digits, and all of them.
bool read_digits(std::string_view text, uint32_t& number) {
  if (text.empty() || text.size() > 3) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Answer<uint32_t> parse_permille(std::string_view name, std::string_view text) {
  std::string_view number = text;
  if (number.ends_with('%')) number.remove_suffix(1);
  const size_t point = number.find('.');
  const std::string_view tenths =
      point == std::string_view::npos ? std::string_view("0") : number.substr(point + 1);
  uint32_t whole = 0;
  uint32_t tenth = 0;
  if (read_digits(number.substr(0, point), whole) && tenths.size() == 1 &&
      read_digits(tenths, tenth) && whole * 10 + tenth <= 1000)
    return whole * 10 + tenth;
  return fail_usage(name_and_value(name, text) +
                    ": accepted: percent from 0 to 100 with at most one decimal, e.g. 90 or 92.5");
}

}  // namespace berth::ctl
