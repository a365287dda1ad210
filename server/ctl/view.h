// What a command has to show, as data: named columns, rows of values, and how each kind of value is
// meant. A View knows nothing of tables, CSV or JSON; render.h turns any View into each of them, so
// a new command describes its columns once and has every output form.
//
// Plain values; no ownership of anything else, no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace berth::ctl {

// What a column's values are. Tables show kBytes, kMillis and kUnixMillis in units for people; CSV
// and JSON always carry the exact number.
enum class Kind : uint8_t {
  kText,        // string
  kWord,        // string of a fixed vocabulary, e.g. a state; coloured by its meaning
  kId,          // uint64: an id of the server, shown as "e3-17"; zero is none
  kHex,         // string of raw bytes
  kCount,       // uint64 or int64
  kBytes,       // uint64
  kMillis,      // uint64 or int64
  kUnixMillis,  // uint64: wall clock of the server
  kFlag,        // bool
  kList,        // list of strings
};

// Nothing (monostate) is "-" in a table, an empty CSV field and null in JSON.
using Value =
    std::variant<std::monostate, bool, int64_t, uint64_t, std::string, std::vector<std::string>>;

enum class Shown : uint8_t {
  kEverywhere,
  kDataOnly,   // CSV and JSON only: exact or rarely read, and tables are narrow
  kTableOnly,  // a shorter form of data columns
};

struct Column {
  std::string_view key;    // CSV header and JSON name: snake_case, never changed once released
  std::string_view title;  // table header
  Kind kind = Kind::kText;
  Shown shown = Shown::kEverywhere;
  bool alarming = false;  // a value that is not zero is shown as trouble
  size_t width_min = 0;  // of a stream, whose later values are not known when its header is printed
};

using Row = std::vector<Value>;  // one value per column

enum class Layout : uint8_t {
  kRows,
  kRecord,  // exactly one row: "title  value" lines in a table, members of the top object in JSON
};

struct Section {
  std::string_view name;  // JSON name, and the `table` column of a CSV that holds several sections
  Layout layout = Layout::kRows;
  std::vector<Column> columns;
  std::vector<Row> rows = {};
  std::string_view when_empty = {};  // what a table says instead of a header without rows
};

struct View {
  std::vector<Section> sections;
  // Lists: whether the server has further rows than the limit let through. JSON only.
  std::optional<bool> more;
  // Set by watch mode: when this view was taken, so that appended views can be told apart.
  std::string taken_at;
};

}  // namespace berth::ctl
