// The three forms of a View, each one function, plus the table's building block for streams.
// Pure: text in, text out; what the output device can do comes in as TableStyle.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/ctl/view.h"

namespace berth::ctl {

struct TableStyle {
  size_t width = 0;  // columns of the terminal; zero: no terminal, nothing is ever cut
  bool colour = false;
};

// Aligned columns, numbers to the right. Everything that is not printable ASCII is escaped, so no
// name can move the cursor or forge a line. On a terminal long texts are shortened first, then
// lines are cut;
// "~" marks both.
std::string render_table(const View& view, const TableStyle& style);

// One header, then one line per row (RFC 4180). With several sections the first column is `table`,
// and the columns are the union of theirs; fields that a section lacks are empty.
enum class CsvHeader : uint8_t { kPrinted, kOmitted };
std::string render_csv(const View& view, CsvHeader header = CsvHeader::kPrinted);

// One object. Sections of rows are arrays under their names, records are members of the object
// itself.
enum class JsonForm : uint8_t { kIndented, kOneLine };
std::string render_json(const View& view, JsonForm form = JsonForm::kIndented);
// One object for each row of the section, one per line: the form of a stream.
std::string render_json_lines(const Section& section);

// A table whose rows arrive over time: columns only ever grow, and the header is printed once.
class StreamTable {
 public:
  std::string append(const Section& section, const TableStyle& style);

 private:
  std::vector<size_t> widths_;
};

// A value as a table shows it, without alignment or colour.
std::string table_text(const Column& column, const Value& value);
// The exact form: what CSV holds.
std::string data_text(const Column& column, const Value& value);

}  // namespace berth::ctl
