#include <algorithm>

#include "server/ctl/render.h"

namespace berth::ctl {
namespace {

bool in_data(const Column& column) { return column.shown != Shown::kTableOnly; }

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string result = "\"";
  for (const char c : field) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

// Every key that a section has, in the order of first appearance.
std::vector<std::string_view> keys_of(const View& view) {
  std::vector<std::string_view> keys;
  for (const Section& section : view.sections)
    for (const Column& column : section.columns)
      if (in_data(column) && std::find(keys.begin(), keys.end(), column.key) == keys.end())
        keys.push_back(column.key);
  return keys;
}

std::string field_of(const Section& section, const Row& row, std::string_view key) {
  for (size_t i = 0; i < section.columns.size(); ++i)
    if (section.columns[i].key == key && in_data(section.columns[i]))
      return quoted(data_text(section.columns[i], row[i]));
  return "";
}

void append_line(std::string& text, const std::vector<std::string>& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) text += ',';
    text += fields[i];
  }
  text += '\n';
}

// What stands before the columns of the sections: the time of a watched view, the name of the
// section.
std::vector<std::string> leading(const View& view, std::string_view time, std::string_view table) {
  std::vector<std::string> fields;
  if (!view.taken_at.empty()) fields.emplace_back(time);
  if (view.sections.size() > 1) fields.emplace_back(table);
  return fields;
}

}  // namespace

std::string render_csv(const View& view, CsvHeader header) {
  const std::vector<std::string_view> keys = keys_of(view);
  std::string text;
  if (header == CsvHeader::kPrinted) {
    std::vector<std::string> fields = leading(view, "time", "table");
    fields.insert(fields.end(), keys.begin(), keys.end());
    append_line(text, fields);
  }
  for (const Section& section : view.sections) {
    for (const Row& row : section.rows) {
      std::vector<std::string> fields = leading(view, view.taken_at, section.name);
      for (const std::string_view key : keys) fields.push_back(field_of(section, row, key));
      append_line(text, fields);
    }
  }
  return text;
}

}  // namespace berth::ctl
