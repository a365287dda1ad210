#include <algorithm>
#include <numeric>

#include "server/ctl/render.h"

namespace berth::ctl {
namespace {

constexpr std::string_view kGap = "  ";
constexpr char kCutMark = '~';
// A shortened text still shows enough to recognise a name or a digest by.
constexpr size_t kShortenedWidthMin = 8;

enum class Tone : uint8_t { kPlain, kGood, kWaiting, kTrouble, kHeader };

// The words of every state in the protocol; a word that is not here is shown plainly.
Tone tone_of_word(std::string_view word) {
  constexpr std::string_view kGood[] = {"live", "ready", "attached", "serving", "yes", "retired"};
  constexpr std::string_view kWaiting[] = {"unverified", "closing", "draining", "reattaching",
                                           "detached",   "ending",  "reserved", "retiring",
                                           "starting",   "stopping"};
  constexpr std::string_view kTrouble[] = {"silent",   "gone",   "quarantined",
                                           "degraded", "broken", "gap"};
  const auto holds = [word](const auto& words) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
  };
  if (holds(kGood)) return Tone::kGood;
  if (holds(kWaiting)) return Tone::kWaiting;
  if (holds(kTrouble)) return Tone::kTrouble;
  return Tone::kPlain;
}

bool is_nonzero(const Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return *number != 0;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number != 0;
  if (const auto* text = std::get_if<std::string>(&value)) return !text->empty();
  return false;
}

Tone tone_of(const Column& column, const Value& value, std::string_view text) {
  if (column.alarming && is_nonzero(value)) return Tone::kTrouble;
  return column.kind == Kind::kWord ? tone_of_word(text) : Tone::kPlain;
}

std::string painted(std::string text, Tone tone, const TableStyle& style) {
  if (!style.colour || text.empty()) return text;
  switch (tone) {
    case Tone::kPlain:
      return text;
    case Tone::kGood:
      return "\x1b[32m" + text + "\x1b[0m";
    case Tone::kWaiting:
      return "\x1b[33m" + text + "\x1b[0m";
    case Tone::kTrouble:
      return "\x1b[31m" + text + "\x1b[0m";
    case Tone::kHeader:
      return "\x1b[1m" + text + "\x1b[0m";
  }
  return text;
}

bool is_number(Kind kind) {
  return kind == Kind::kCount || kind == Kind::kBytes || kind == Kind::kMillis;
}

// Ids, numbers and times are never shortened: part of one is a wrong one.
bool may_shorten(Kind kind) {
  return kind == Kind::kText || kind == Kind::kHex || kind == Kind::kList;
}

std::string cut(std::string text, size_t width) {
  if (text.size() <= width) return text;
  text.resize(width - 1);
  return text + kCutMark;
}

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
};

struct Grid {
  std::vector<Column> columns;           // those that a table shows
  std::vector<std::vector<Cell>> lines;  // without the header
};

Grid grid_of(const Section& section) {
  Grid grid;
  for (const Column& column : section.columns)
    if (column.shown != Shown::kDataOnly) grid.columns.push_back(column);
  for (const Row& row : section.rows) {
    std::vector<Cell>& line = grid.lines.emplace_back();
    for (size_t i = 0; i < section.columns.size(); ++i) {
      if (section.columns[i].shown == Shown::kDataOnly) continue;
      std::string text = table_text(section.columns[i], row[i]);
      const Tone tone = tone_of(section.columns[i], row[i], text);
      line.push_back({std::move(text), tone});
    }
  }
  return grid;
}

std::vector<size_t> widths_of(const Grid& grid) {
  std::vector<size_t> widths;
  for (size_t i = 0; i < grid.columns.size(); ++i) {
    size_t width = std::max(grid.columns[i].title.size(), grid.columns[i].width_min);
    for (const auto& line : grid.lines) width = std::max(width, line[i].text.size());
    widths.push_back(width);
  }
  return widths;
}

size_t line_width(const std::vector<size_t>& widths) {
  const size_t gaps = widths.empty() ? 0 : (widths.size() - 1) * kGap.size();
  return std::accumulate(widths.begin(), widths.end(), gaps);
}

// Takes from the widest text column until the line fits or no text can give any more.
void shorten_to_fit(std::vector<size_t>& widths, const Grid& grid, size_t width_max) {
  if (width_max == 0) return;
  while (line_width(widths) > width_max) {
    size_t* widest = nullptr;
    for (size_t i = 0; i < widths.size(); ++i) {
      const size_t floor = std::max(kShortenedWidthMin, grid.columns[i].title.size());
      if (!may_shorten(grid.columns[i].kind) || widths[i] <= floor) continue;
      if (!widest || widths[i] > *widest) widest = &widths[i];
    }
    if (!widest) return;
    --*widest;
  }
}

// Writes one line cell by cell. A line that is wider than the terminal is cut one short of its
// edge, and the mark takes the last place, so that every line of a cut table shows that there is
// more.
class LineWriter {
 public:
  LineWriter(std::string& out, const TableStyle& style, size_t width)
      : out_(out), style_(style), cut_(style.width != 0 && width > style.width) {}

  void cell(std::string text, Tone tone, size_t width, bool to_the_right) {
    text = cut(std::move(text), width);
    const std::string padding(width - text.size(), ' ');
    if (used_ > 0) put(std::string(kGap), Tone::kPlain);
    if (to_the_right) put(padding, Tone::kPlain);
    put(std::move(text), tone);
    if (!to_the_right) put(padding, Tone::kPlain);
  }

  void end() {
    // Blanks at the end would only be found by whoever copies the line.
    if (!cut_)
      while (!out_.empty() && out_.back() == ' ') out_.pop_back();
    if (cut_) out_ += kCutMark;
    out_ += '\n';
  }

 private:
  void put(std::string text, Tone tone) {
    if (cut_) text.resize(std::min(text.size(), style_.width - 1 - used_));
    used_ += text.size();
    out_ += painted(std::move(text), tone, style_);
  }

  std::string& out_;
  const TableStyle& style_;
  const bool cut_;
  size_t used_ = 0;
};

void append_header(std::string& out, const Grid& grid, const std::vector<size_t>& widths,
                   const TableStyle& style) {
  LineWriter line(out, style, line_width(widths));
  for (size_t i = 0; i < widths.size(); ++i)
    line.cell(std::string(grid.columns[i].title), Tone::kHeader, widths[i],
              is_number(grid.columns[i].kind));
  line.end();
}

void append_lines(std::string& out, const Grid& grid, const std::vector<size_t>& widths,
                  const TableStyle& style) {
  for (const auto& cells : grid.lines) {
    LineWriter line(out, style, line_width(widths));
    for (size_t i = 0; i < widths.size(); ++i)
      line.cell(cells[i].text, cells[i].tone, widths[i], is_number(grid.columns[i].kind));
    line.end();
  }
}

void append_record(std::string& out, const Grid& grid, const TableStyle& style) {
  size_t width = 0;
  for (const Column& column : grid.columns) width = std::max(width, column.title.size());
  for (const auto& cells : grid.lines) {
    for (size_t i = 0; i < grid.columns.size(); ++i) {
      const size_t text_width = cells[i].text.size();
      LineWriter line(out, style, line_width({width, text_width}));
      line.cell(std::string(grid.columns[i].title), Tone::kHeader, width, false);
      line.cell(cells[i].text, cells[i].tone, text_width, false);
      line.end();
    }
  }
}

void append_section(std::string& out, const Section& section, const TableStyle& style) {
  if (section.rows.empty()) {
    out += section.when_empty;
    out += '\n';
    return;
  }
  const Grid grid = grid_of(section);
  if (section.layout == Layout::kRecord) return append_record(out, grid, style);
  std::vector<size_t> widths = widths_of(grid);
  shorten_to_fit(widths, grid, style.width);
  append_header(out, grid, widths, style);
  append_lines(out, grid, widths, style);
}

}  // namespace

std::string render_table(const View& view, const TableStyle& style) {
  std::string out;
  if (!view.taken_at.empty()) out += view.taken_at + "\n";
  bool first = true;
  for (const Section& section : view.sections) {
    if (section.rows.empty() && section.when_empty.empty()) continue;
    if (!first) out += '\n';
    first = false;
    append_section(out, section, style);
  }
  return out;
}

std::string StreamTable::append(const Section& section, const TableStyle& style) {
  const Grid grid = grid_of(section);
  std::vector<size_t> widths = widths_of(grid);
  const bool first = widths_.empty();
  if (!first)
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], widths_[i]);
  widths_ = widths;
  shorten_to_fit(widths, grid, style.width);
  std::string out;
  if (first) append_header(out, grid, widths, style);
  append_lines(out, grid, widths, style);
  return out;
}

}  // namespace berth::ctl
