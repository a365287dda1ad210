#include "common/text.h"

#include <charconv>
#include <optional>

namespace berth {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::optional<uint8_t> nibble_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

void append_hex(std::string& out, uint8_t byte) {
  out += kHexDigits[byte >> 4];
  out += kHexDigits[byte & 0xF];
}

// A whole decimal number and nothing else: no sign, no leading zero, no spaces.
std::optional<uint64_t> decimal_of(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) append_hex(out, static_cast<uint8_t>(c));
  return out;
}

std::string to_hex(const Id128& id) {
  std::string out;
  out.reserve(32);
  for (uint64_t half : {id.high, id.low})
    for (int shift = 56; shift >= 0; shift -= 8)
      append_hex(out, static_cast<uint8_t>(half >> shift));
  return out;
}

Result<std::string> bytes_from_hex(std::string_view name, std::string_view text) {
  const auto no = [&] {
    return refuse(Reason::kInvalidArgument,
                  name_and_value(name, text) + ": not hex; accepted: pairs of 0-9 and a-f");
  };
  if (text.size() % 2 != 0) return no();
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const auto high = nibble_of(text[i]);
    const auto low = nibble_of(text[i + 1]);
    if (!high || !low) return no();
    bytes += static_cast<char>(*high << 4 | *low);
  }
  return bytes;
}

Result<Id128> id128_from_hex(std::string_view name, std::string_view text) {
  const auto no = [&] {
    return refuse(Reason::kInvalidArgument,
                  name_and_value(name, text) +
                      ": not a 128-bit id; accepted: 32 hex digits, or the UUID form with dashes");
  };
  const bool uuid_form = text.size() == 36;
  if (!uuid_form && text.size() != 32) return no();
  Id128 id;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash_place = uuid_form && (i == 8 || i == 13 || i == 18 || i == 23);
    if (dash_place && text[i] == '-') continue;
    const auto nibble = nibble_of(text[i]);
    if (dash_place || !nibble) return no();
    id.high = id.high << 4 | id.low >> 60;
    id.low = id.low << 4 | *nibble;
  }
  return id;
}

std::string id_text(uint64_t value) {
  if (value == 0) return "none";
  return "e" + std::to_string(value >> kIdCounterBits) + "-" +
         std::to_string(value & kIdCounterMax);
}

Result<uint64_t> id_value_from_text(std::string_view name, std::string_view text) {
  const auto no = [&] {
    return refuse(Reason::kInvalidArgument,
                  name_and_value(name, text) +
                      ": not an id; accepted: epoch and number as printed "
                      "by berthctl, e.g. \"e3-17\"");
  };
  const size_t dash = text.find('-');
  if (text.empty() || text[0] != 'e' || dash == std::string_view::npos) return no();
  const auto epoch = decimal_of(text.substr(1, dash - 1));
  const auto counter = decimal_of(text.substr(dash + 1));
  if (!epoch || !counter || *epoch > kEpochMax || *counter > kIdCounterMax) return no();
  const uint64_t value = *epoch << kIdCounterBits | *counter;
  if (value == 0) return no();
  return value;
}

std::string name_and_value(std::string_view name, std::string_view value) {
  return std::string(name) + " = " + quote(value);
}

std::string quote(std::string_view text, size_t length_max) {
  std::string out = "\"";
  for (char c : text.substr(0, length_max)) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte >= 0x7F) {
      out += "\\x";
      append_hex(out, byte);
    } else {
      out += c;
    }
  }
  if (text.size() > length_max) out += "...";
  return out + '"';
}

}  // namespace berth
