#include "server/rpc/fields.h"

#include <algorithm>
#include <cstring>

#include "common/names.h"
#include "common/text.h"

namespace berth::rpc {
namespace {

uint64_t big_endian(const char* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

void append_big_endian(std::string& out, uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
}

std::string range_text(uint64_t min, uint64_t max) {
  if (max == kAnyNumber) return std::to_string(min) + " or more";
  return std::to_string(min) + " to " + std::to_string(max);
}

std::string byte_count(size_t count) { return std::to_string(count) + " bytes"; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

void Fields::refuse(std::string_view field, std::string_view value, std::string_view wrong,
                    std::string_view accepted) {
  if (error_) return;
  std::string message(field);
  message.append(" = ").append(value).append(": ").append(wrong);
  refuse(Error{Reason::kInvalidArgument, message.append("; accepted: ").append(accepted)});
}

void Fields::refuse(Error error) {
  if (!error_) error_ = std::move(error);
}

uint64_t Fields::number(std::string_view field, uint64_t value, uint64_t min, uint64_t max) {
  if (value >= min && value <= max) return value;
  const char* wrong = value == 0 ? "is missing" : value < min ? "is too small" : "is too large";
  refuse(field, std::to_string(value), wrong, range_text(min, max));
  return min;
}

uint32_t Fields::number32(std::string_view field, uint32_t value, uint32_t min, uint32_t max) {
  return static_cast<uint32_t>(number(field, value, min, max));
}

Duration Fields::duration(std::string_view field, uint64_t millis, Duration max) {
  const auto millis_max = static_cast<uint64_t>(max.millis);
  if (millis > millis_max)
    refuse(field, std::to_string(millis), "is too long",
           range_text(0, millis_max) + " milliseconds");
  return milliseconds(static_cast<int64_t>(std::min(millis, millis_max)));
}

std::string Fields::name(std::string_view field, const std::string& text, Given presence,
                         size_t length_max) {
  if (text.empty() && presence == Given::kOptional) return text;
  if (auto valid = validate_name(field, text, length_max); !valid) refuse(std::move(valid.error()));
  return text;
}

std::string Fields::text(std::string_view field, const std::string& text, Given presence,
                         size_t length_max) {
  const bool required = presence == Given::kRequired;
  const char* wrong = text.empty() && required   ? "is missing"
                      : text.size() > length_max ? "is too long"
                      : std::any_of(text.begin(), text.end(), is_control)
                          ? "holds a control character"
                          : nullptr;
  if (wrong)
    refuse(field, quote(text), wrong,
           std::string(required ? "1" : "0") + " to " + byte_count(length_max) +
               " of text without control characters");
  return text;
}

Id128 Fields::id128(std::string_view field, std::string_view bytes, Given presence) {
  if (bytes.empty() && presence == Given::kOptional) return {};
  if (bytes.size() != 16) {
    refuse(field, byte_count(bytes.size()), "has the wrong length", "16 bytes");
    return {};
  }
  const Id128 id{big_endian(bytes.data()), big_endian(bytes.data() + 8)};
  if (!id.valid()) refuse(field, "all zero", "names nothing", "16 bytes, not all zero");
  return id;
}

void Fields::item_count(std::string_view field, size_t count, size_t count_max) {
  if (count >= 1 && count <= count_max) return;
  refuse(field, std::to_string(count) + " items", count == 0 ? "is empty" : "is past its bound",
         range_text(1, count_max) + " items");
}

void Fields::length(std::string_view field, size_t length, size_t count) {
  if (length == count) return;
  refuse(field, std::to_string(length) + " elements", "has the wrong length",
         std::to_string(count) + " elements, one an item");
}

size_t Fields::digest_count(std::string_view field, std::string_view bytes, size_t width,
                            size_t count_max) {
  if (bytes.empty() || bytes.size() % width != 0)
    refuse(field, byte_count(bytes.size()), "is not a whole number of digests of this namespace",
           "one or more digests of " + byte_count(width));
  else
    item_count(field, bytes.size() / width, count_max);
  return failed() ? 0 : bytes.size() / width;
}

std::vector<Digest> Fields::digests(std::string_view field, std::string_view bytes, size_t width,
                                    size_t count_max) {
  std::vector<Digest> digests;
  const size_t count = digest_count(field, bytes, width, count_max);
  digests.reserve(count);
  for (size_t i = 0; i < count; ++i) digests.push_back(digest_at(bytes, width, i));
  return digests;
}

NumberColumn Fields::numbers(std::string_view field,
                             const google::protobuf::RepeatedField<uint32_t>& values, size_t count,
                             uint32_t bound) {
  const auto given = static_cast<size_t>(values.size());
  if (given > 1 && given != count)
    refuse(field, std::to_string(given) + " elements", "has the wrong length",
           "none, 1, or " + std::to_string(count) + " elements");
  for (const uint32_t value : values)
    if (value >= bound) {
      refuse(field, std::to_string(value), "is out of range",
             range_text(0, bound - 1) + " in this namespace");
      break;
    }
  return failed() ? NumberColumn() : NumberColumn(values);
}

void Fields::range(std::string_view field, const google::protobuf::RepeatedField<uint64_t>& values,
                   uint64_t min, uint64_t max) {
  const auto wrong = std::find_if(values.begin(), values.end(),
                                  [&](uint64_t value) { return value < min || value > max; });
  if (wrong != values.end()) number(field, *wrong, min, max);
}

std::string bytes_of(const Id128& id) {
  std::string bytes;
  if (!id.valid()) return bytes;
  bytes.reserve(16);
  append_big_endian(bytes, id.high);
  append_big_endian(bytes, id.low);
  return bytes;
}

}  // namespace berth::rpc
