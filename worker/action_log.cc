#include "worker/action_log.h"

#include "common/log.h"

namespace berth::worker {
namespace {

constexpr size_t kFieldsMax = 4;

void write(Note::Level level, std::string_view event, log::Fields fields) {
  if (level == Note::Level::kWarning) return log::warning(event, fields);
  log::info(event, fields);
}

}  // namespace

void log_note(const Note& note) {
  std::vector<log::Field> f;
  for (const auto& [name, value] : note.fields) f.emplace_back(name, value);
  // The log takes its fields as a list; the agent never has more than a handful.
  switch (std::min(f.size(), kFieldsMax + 1)) {
    case 0:
      return write(note.level, note.event, {});
    case 1:
      return write(note.level, note.event, {f[0]});
    case 2:
      return write(note.level, note.event, {f[0], f[1]});
    case 3:
      return write(note.level, note.event, {f[0], f[1], f[2]});
    case 4:
      return write(note.level, note.event, {f[0], f[1], f[2], f[3]});
    default:
      return write(note.level, note.event, {f[0], f[1], f[2], f[3], f[4]});
  }
}

}  // namespace berth::worker
