// Structured logs: an event name and its fields, one line each, written where the decision is
// known.
//
//   log::info("pool_registered", {{"pool", pool.id}, {"bytes", pool.capacity_bytes}});
//   2026-01-31T12:00:00.250Z info pool_registered pool=e3-17 bytes=8589934592
//
// Values with spaces, quotes or control characters come out quoted and escaped, so nobody can forge
// a line. Lines go to stderr; under journald each starts with its priority instead of time and
// level. Thread-safe. Nothing in the core logs.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/error.h"
#include "common/ids.h"
#include "common/time.h"

namespace berth::log {

enum class Level : uint8_t { kDebug, kInfo, kWarning, kError };

struct Field {
  Field(std::string_view field_name, std::string_view text);
  Field(std::string_view field_name, const char* text)
      : Field(field_name, std::string_view(text)) {}
  Field(std::string_view field_name, const std::string& text)
      : Field(field_name, std::string_view(text)) {}
  Field(std::string_view field_name, bool flag);
  Field(std::string_view field_name, double number);
  Field(std::string_view field_name, Duration duration);
  Field(std::string_view field_name, const Id128& id);
  Field(std::string_view field_name, Reason reason);
  template <std::integral T>
  requires(!std::is_same_v<T, bool>) Field(std::string_view field_name, T number)
      : name(field_name), value(std::to_string(number)) {}
  template <class Tag>
  Field(std::string_view field_name, Id<Tag> id) : name(field_name), value(id_field(id.value())) {}

  std::string_view name;
  std::string value;  // as it is printed

 private:
  static std::string id_field(uint64_t value);
};

using Fields = std::initializer_list<Field>;

// Event and field names are fixed words of ours (snake_case), never input.
void debug(std::string_view event, Fields fields = {});
void info(std::string_view event, Fields fields = {});
void warning(std::string_view event, Fields fields = {});
void error(std::string_view event, Fields fields = {});

// Events below `level` are dropped. The default is kInfo.
void set_level(Level level);
// "debug", "info", "warning", "error". Errors: kInvalidConfig naming `name`.
Result<Level> parse_level(std::string_view name, std::string_view text);

// "pool_registered pool=e3-17 bytes=8589934592", without time and level.
std::string format_event(std::string_view event, Fields fields);

// Whether `descriptor` is the very stream that JOURNAL_STREAM ("device:inode") names. The variable
// alone says nothing: a service's child inherits it also where its own stderr is a file.
bool is_journal_stream(const char* journal_stream, int descriptor);

}  // namespace berth::log
