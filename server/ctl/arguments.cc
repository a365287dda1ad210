#include "server/ctl/arguments.h"

#include <charconv>

#include "common/text.h"
#include "common/units.h"

namespace berth::ctl {

std::string Arguments::text(std::string_view name) const {
  const auto values = values_.find(std::string(name));
  return values == values_.end() || values->second.empty() ? "" : values->second.front();
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  const auto values = values_.find(std::string(name));
  return values == values_.end() ? std::vector<std::string>{} : values->second;
}

Answer<uint64_t> Arguments::count(std::string_view name, uint64_t fallback) const {
  if (!has(name)) return fallback;
  const std::string typed = text(name);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(typed.data(), typed.data() + typed.size(), number);
  if (error != std::errc{} || end != typed.data() + typed.size())
    return fail_usage(name_and_value(name, typed) +
                      ": accepted: a whole number from 0 to 2^64 - 1");
  return number;
}

Answer<uint64_t> Arguments::id(std::string_view name) const {
  return has(name) ? parse_id(name, text(name)) : 0;
}

Answer<uint64_t> Arguments::size(std::string_view name, uint64_t fallback) const {
  return has(name) ? usage_answer(parse_size(name, text(name))) : fallback;
}

Answer<std::string> Arguments::hex(std::string_view name) const {
  return has(name) ? usage_answer(bytes_from_hex(name, text(name))) : std::string();
}

Answer<uint64_t> parse_id(std::string_view name, std::string_view text) {
  return usage_answer(id_value_from_text(name, text));
}

}  // namespace berth::ctl
