// How records of the protocol become rows: a Field is one column together with where its value
// comes from. A list of fields describes a whole view of one record kind.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/ctl/view.h"

namespace berth::ctl {

template <class Record>
struct Field {
  Column column;
  std::function<Value(const Record&)> get;
};

struct SectionText {
  std::string_view name;
  std::string_view when_empty = {};
};

template <class Record, class Records>
Section section_of(const SectionText& text, const std::vector<Field<Record>>& fields,
                   const Records& records) {
  Section section{.name = text.name, .columns = {}, .when_empty = text.when_empty};
  for (const auto& field : fields) section.columns.push_back(field.column);
  for (const Record& record : records) {
    Row& row = section.rows.emplace_back();
    for (const auto& field : fields) row.push_back(field.get(record));
  }
  return section;
}

template <class Record>
Section record_section(std::string_view name, const std::vector<Field<Record>>& fields,
                       const Record& record) {
  Section section = section_of(SectionText{name}, fields, std::vector<Record>{record});
  section.layout = Layout::kRecord;
  return section;
}

inline View view_of(Section section) {
  View view;
  view.sections.push_back(std::move(section));
  return view;
}

// "POOL_STATE_LIVE" under "POOL_STATE_" is "live". `name` is empty for a value that only a newer
// server knows: then its number stands for it. Unspecified is nothing.
Value word_of(std::string_view name, std::string_view prefix, int number);

// Nothing where the protocol uses zero for "no such thing", e.g. no limit.
inline Value none_if_zero(uint64_t number) { return number == 0 ? Value{} : Value{number}; }

}  // namespace berth::ctl
