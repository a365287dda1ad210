#include "server/ctl/watch.h"

#include <ostream>

#include "common/clock.h"
#include "server/ctl/render.h"

namespace berth::ctl {
namespace {

constexpr std::string_view kClearScreen = "\x1b[2J";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

// What the server said may hold anything; a terminal gets to see it escaped.
std::string safe(const std::string& text) { return table_text({"", "", Kind::kText}, text); }

// Overwrites line by line instead of clearing first, which would flicker. More lines than the
// terminal has would scroll and leave a trail, so the rest is cut.
std::string redrawn(const std::string& text, size_t rows) {
  std::string screen(kHome);
  size_t lines = 0;
  size_t start = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', start)) {
    if (rows != 0 && lines + 1 >= rows) break;
    screen.append(text, start, end - start);
    screen += kClearLine;
    screen += '\n';
    start = end + 1;
    ++lines;
  }
  if (start < text.size()) {
    screen += '~';
    screen += kClearLine;
  }
  return screen += kClearBelow;
}

class Watcher {
 public:
  Watcher(AdminClient& client, const Invocation& invocation, Console& console)
      : client_(client),
        invocation_(invocation),
        console_(console),
        redraws_(console.terminal && invocation.format == Format::kTable) {
    if (redraws_) console_.out << kClearScreen;
  }

  int run(Duration interval) {
    while (true) {
      auto outcome = invocation_.command->produce(client_, invocation_.arguments);
      if (outcome) {
        exit_code_ = outcome->exit_code;
        show(*outcome);
      } else {
        exit_code_ = outcome.error().exit_code;
        show(outcome.error());
        if (exit_code_ == ExitCode::kUsage || exit_code_ == ExitCode::kRefused) break;
      }
      if (!console_.out.good() || !console_.wait(interval)) break;
    }
    return static_cast<int>(exit_code_);
  }

 private:
  void show(Outcome& outcome) {
    outcome.view.taken_at = wall_clock_text(wall_clock_millis());
    std::string notes;
    for (const std::string& note : outcome.notes) notes += note_text(invocation_.path, note);
    if (redraws_) return redraw(view_text(outcome.view, Format::kTable, console_) + notes);
    append(outcome.view);
    console_.err << notes << std::flush;
  }

  void show(const Failure& failure) {
    const std::string text = failure_text(invocation_.path, failure);
    if (redraws_) return redraw(wall_clock_text(wall_clock_millis()) + "\n" + text);
    console_.err << text << std::flush;
  }

  void append(const View& view) {
    if (invocation_.format == Format::kCsv)
      console_.out << render_csv(view, appended_ ? CsvHeader::kOmitted : CsvHeader::kPrinted);
    else if (invocation_.format == Format::kJson)
      console_.out << render_json(view, JsonForm::kOneLine);
    else
      console_.out << (appended_ ? "\n" : "") << view_text(view, Format::kTable, console_);
    console_.out << std::flush;
    appended_ = true;
  }

  void redraw(const std::string& text) {
    console_.out << redrawn(text, console_.size().rows) << std::flush;
  }

  AdminClient& client_;
  const Invocation& invocation_;
  Console& console_;
  const bool redraws_;
  bool appended_ = false;
  ExitCode exit_code_ = ExitCode::kOk;
};

}  // namespace

int watch(AdminClient& client, const Invocation& invocation, Duration interval, Console& console) {
  return Watcher(client, invocation, console).run(interval);
}

std::string view_text(const View& view, Format format, const Console& console) {
  switch (format) {
    case Format::kJson:
      return render_json(view);
    case Format::kCsv:
      return render_csv(view);
    case Format::kTable:
      break;
  }
  return render_table(view, {.width = console.size().columns, .colour = console.colour});
}

std::string failure_text(const std::string& path, const Failure& failure) {
  std::string text = path + ": " + safe(failure.message) + "\n";
  if (!failure.advice.empty()) text += "  " + failure.advice + "\n";
  return text;
}

std::string note_text(const std::string& path, const std::string& note) {
  return path + ": note: " + safe(note) + "\n";
}

}  // namespace berth::ctl
