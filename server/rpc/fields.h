// Reads the fields of one request and remembers the first that is wrong. Getters always return a
// usable value, so a translation reads straight through and asks once at its end:
//
//   Fields fields;
//   Commit command;
//   command.id.operation = fields.number("operation", request.operation(), 1, kAnyNumber);
//   ...
//   return fields.checked(std::move(command));   // Result<Commit>
//
// A refusal is `invalid_argument` and reads "FIELD = VALUE: what is wrong; accepted: FORM".
#pragma once

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/error.h"
#include "common/ids.h"
#include "common/time.h"
#include "server/directory/types.h"

namespace berth::rpc {

inline constexpr uint64_t kAnyNumber = std::numeric_limits<uint64_t>::max();

enum class Given : uint8_t { kOptional, kRequired };

// Digest `index` of those that lie back to back in `bytes`.
inline Digest digest_at(std::string_view bytes, size_t width, size_t index) {
  Digest digest;
  const char* from = bytes.data() + index * width;
  // Nearly always: a copy of known size.
  if (width == kDigestBytesMax)
    std::memcpy(digest.bytes.data(), from, kDigestBytesMax);
  else
    std::memcpy(digest.bytes.data(), from, width);
  return digest;
}

// A checked column of shard or part numbers, in the message that it came in.
class NumberColumn {
 public:
  NumberColumn() = default;  // all 0
  explicit NumberColumn(const google::protobuf::RepeatedField<uint32_t>& values)
      : values_(values.data()), last_(values.size() > 1 ? kAnyNumber : 0) {
    if (values.empty()) values_ = &kZero;
  }
  uint16_t operator[](size_t index) const {
    return static_cast<uint16_t>(values_[std::min<uint64_t>(index, last_)]);
  }

 private:
  static constexpr uint32_t kZero = 0;
  const uint32_t* values_ = &kZero;
  uint64_t last_ = 0;  // one element stands for all
};

class Fields {
 public:
  bool failed() const { return error_.has_value(); }
  template <class T>
  Result<T> checked(T value) const {
    if (error_) return tl::unexpected(*error_);
    return value;
  }

  // `value` is shown as it is: quote what came as text.
  void refuse(std::string_view field, std::string_view value, std::string_view wrong,
              std::string_view accepted);
  void refuse(Error error);

  uint64_t number(std::string_view field, uint64_t value, uint64_t min, uint64_t max);
  uint32_t number32(std::string_view field, uint32_t value, uint32_t min, uint32_t max);
  // Milliseconds from zero, which stands for the server's default, to `max`.
  Duration duration(std::string_view field, uint64_t millis, Duration max);

  // The rule of common/names.h; when optional, empty is allowed.
  std::string name(std::string_view field, const std::string& text, Given presence,
                   size_t length_max);
  // Free text: up to `length_max` bytes without control characters.
  std::string text(std::string_view field, const std::string& text, Given presence,
                   size_t length_max);
  // 16 bytes, not all zero; when optional, empty is the invalid id.
  Id128 id128(std::string_view field, std::string_view bytes, Given presence);

  template <class IdType>
  IdType id(std::string_view field, uint64_t value) {
    if (value == 0) refuse(field, "0", "is missing", "an id that the server handed out");
    return IdType(value);
  }

  // An enum of the wire as one of ours, which has the same numbers: 1 to `last`.
  template <class Enum>
  Enum choice(std::string_view field, int value, Enum last) {
    if (value >= 1 && value <= static_cast<int>(last)) return static_cast<Enum>(value);
    refuse(field, std::to_string(value), "is not a known value",
           "1 to " + std::to_string(static_cast<int>(last)));
    return last;
  }

  // ---- Columns ----
  // 1 to `count_max` items.
  void item_count(std::string_view field, size_t count, size_t count_max);
  // Exactly `count` elements.
  void length(std::string_view field, size_t length, size_t count);
  // The digests that `bytes` holds back to back, each `width` bytes wide.
  std::vector<Digest> digests(std::string_view field, std::string_view bytes, size_t width,
                              size_t count_max);
  // How many that are; 0 after a refusal.
  size_t digest_count(std::string_view field, std::string_view bytes, size_t width,
                      size_t count_max);
  // Shard or part numbers below `bound`: `count` elements, one for all, or none, which means 0.
  NumberColumn numbers(std::string_view field,
                       const google::protobuf::RepeatedField<uint32_t>& values, size_t count,
                       uint32_t bound);
  // Each of `values` within `min` and `max`.
  void range(std::string_view field, const google::protobuf::RepeatedField<uint64_t>& values,
             uint64_t min, uint64_t max);
  template <class IdType>
  std::vector<IdType> ids(std::string_view field,
                          const google::protobuf::RepeatedField<uint64_t>& values,
                          size_t count_max) {
    item_count(field, static_cast<size_t>(values.size()), count_max);
    if (failed()) return {};
    return {values.begin(), values.end()};
  }

 private:
  std::optional<Error> error_;
};

// 16 bytes, high half first; the invalid id is empty.
std::string bytes_of(const Id128& id);

}  // namespace berth::rpc
