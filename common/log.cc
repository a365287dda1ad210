#include "common/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

#include "common/text.h"
#include "common/units.h"

namespace berth::log {
namespace {

struct LevelRow {
  Level level;
  std::string_view name;
  spdlog::level::level_enum sink_level;
  std::string_view journal_prefix;  // syslog priority, see sd-daemon(3)
};
constexpr std::array kLevels{
    LevelRow{Level::kDebug, "debug", spdlog::level::debug, "<7>"},
    LevelRow{Level::kInfo, "info", spdlog::level::info, "<6>"},
    LevelRow{Level::kWarning, "warning", spdlog::level::warn, "<4>"},
    LevelRow{Level::kError, "error", spdlog::level::err, "<3>"},
};

const LevelRow& row_of_level(Level level) { return kLevels[static_cast<size_t>(level)]; }

// The sink and whether it is the journal, decided once at the first event. Never destroyed, so that
// a thread that outlives main() can still log.
struct Output {
  bool to_journal = is_journal_stream(std::getenv("JOURNAL_STREAM"), 2);
  spdlog::logger logger{"berth", std::make_shared<spdlog::sinks::stderr_sink_mt>()};

  Output() {
    logger.set_pattern(to_journal ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %v",
                       spdlog::pattern_time_type::utc);
    logger.set_level(spdlog::level::info);
    // A full disk behind stderr must not fill stderr with complaints about itself.
    logger.set_error_handler([](const std::string&) {});
  }
};

Output& output() {
  static auto* const instance = new Output;
  return *instance;
}

void write(Level level, std::string_view event, Fields fields) {
  Output& out = output();
  const LevelRow& row = row_of_level(level);
  if (!out.logger.should_log(row.sink_level)) return;
  const std::string text = format_event(event, fields);
  if (out.to_journal)
    out.logger.log(row.sink_level, "{}{}", row.journal_prefix, text);
  else
    out.logger.log(row.sink_level, "{} {}", row.name, text);
}

// Bare when it reads as one word, else quoted. Long texts are the caller's to shorten: an error
// message may hold several lines.
std::string field_text(std::string_view text) {
  constexpr size_t kFieldLengthMax = 4096;
  const bool bare = !text.empty() && text.size() <= kFieldLengthMax &&
                    std::all_of(text.begin(), text.end(), [](char c) {
                      return c > ' ' && c < 0x7F && c != '"' && c != '=' && c != '\\';
                    });
  return bare ? std::string(text) : quote(text, kFieldLengthMax);
}

}  // namespace

Field::Field(std::string_view field_name, std::string_view text)
    : name(field_name), value(field_text(text)) {}
Field::Field(std::string_view field_name, bool flag)
    : name(field_name), value(flag ? "true" : "false") {}
Field::Field(std::string_view field_name, double number)
    : name(field_name), value(fmt::format("{:.6g}", number)) {}
Field::Field(std::string_view field_name, Duration duration)
    : name(field_name), value(format_duration(duration)) {}
Field::Field(std::string_view field_name, const Id128& id) : name(field_name), value(to_hex(id)) {}
Field::Field(std::string_view field_name, Reason reason)
    : name(field_name), value(name_of(reason)) {}

std::string Field::id_field(uint64_t value) { return id_text(value); }

void debug(std::string_view event, Fields fields) { write(Level::kDebug, event, fields); }
void info(std::string_view event, Fields fields) { write(Level::kInfo, event, fields); }
void warning(std::string_view event, Fields fields) { write(Level::kWarning, event, fields); }
void error(std::string_view event, Fields fields) { write(Level::kError, event, fields); }

void set_level(Level level) { output().logger.set_level(row_of_level(level).sink_level); }

Result<Level> parse_level(std::string_view name, std::string_view text) {
  for (const LevelRow& row : kLevels)
    if (row.name == text) return row.level;
  return refuse(
      Reason::kInvalidConfig,
      name_and_value(name, text) + ": not a log level; accepted: debug, info, warning or error");
}

std::string format_event(std::string_view event, Fields fields) {
  std::string line(event);
  for (const Field& field : fields) {
    line += ' ';
    line += field.name;
    line += '=';
    line += field.value;
  }
  return line;
}

bool is_journal_stream(const char* journal_stream, int descriptor) {
  if (journal_stream == nullptr) return false;
  struct stat file {};
  if (fstat(descriptor, &file) != 0) return false;
  return journal_stream == std::to_string(file.st_dev) + ":" + std::to_string(file.st_ino);
}

}  // namespace berth::log
