// Text forms that every part of Berth prints and reads alike: hex for digests and 128-bit ids,
// "e3-17" for ids that the server hands out, and quoting for values that came from outside.
// Parsing functions take the name of the field or option, which their errors quote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/error.h"
#include "common/ids.h"

namespace berth {

// Lower-case hex, two characters per byte.
std::string to_hex(std::string_view bytes);
// 32 characters, high half first.
std::string to_hex(const Id128& id);

// The bytes that `text` spells, in either case. Errors: kInvalidArgument.
Result<std::string> bytes_from_hex(std::string_view name, std::string_view text);
// 32 hex characters; the dashes of the UUID form are allowed. Errors: kInvalidArgument.
Result<Id128> id128_from_hex(std::string_view name, std::string_view text);

// "e3-17": made by epoch 3 as its 17th. "none" for an id that is not valid.
std::string id_text(uint64_t value);
template <class Tag>
std::string to_text(Id<Tag> id) {
  return id_text(id.value());
}

// The form that to_text prints; "none" is refused. Errors: kInvalidArgument.
Result<uint64_t> id_value_from_text(std::string_view name, std::string_view text);
template <class IdType>
Result<IdType> id_from_text(std::string_view name, std::string_view text) {
  return id_value_from_text(name, text).map([](uint64_t value) { return IdType(value); });
}

// What follows a name in every error about a value: "pool.size = \"8 GB\"".
std::string name_and_value(std::string_view name, std::string_view value);

// "..." with quotes, backslashes, control characters and everything beyond ASCII escaped, cut with
// "..." after `length_max` bytes, so that no input can forge a line of a log or flood it.
inline constexpr size_t kQuotedLengthMax = 200;
std::string quote(std::string_view text, size_t length_max = kQuotedLengthMax);

}  // namespace berth
