// What every list command has in common: --limit, all pages up to it, and a note when there is
// more.
#pragma once

#include "server/ctl/command.h"
#include "server/ctl/fields.h"
#include "server/ctl/pages.h"

namespace berth::ctl {

inline const OptionSpec kLimitOption{"--limit", "N", "Rows at most; 0: all (the default)"};

template <class Row>
struct ListText {
  SectionText section;
  const std::vector<Field<Row>>& fields;
};

// The view of rows already fetched.
template <class Row>
Outcome list_outcome(const Listed<Row>& listed, const ListText<Row>& text) {
  Outcome outcome{.view = view_of(section_of(text.section, text.fields, listed.rows))};
  outcome.view.more = listed.more;
  if (listed.more)
    outcome.notes.push_back("there are more than these " + std::to_string(listed.rows.size()) +
                            " rows; raise --limit (0: all)");
  return outcome;
}

// A list whose pages go on behind the id of their last row.
template <class Row, class Request, class TakeRows, class IdOf>
Answer<Outcome> produce_list(AdminClient& client, Request request, const Arguments& arguments,
                             const ListText<Row>& text, TakeRows take_rows, IdOf id_of) {
  const auto limit = arguments.count("--limit", 0);
  if (!limit) return fail(limit.error());
  const auto next_after = [&](const auto&, const std::vector<Row>& rows) {
    return rows.empty() ? 0 : id_of(rows.back());
  };
  auto listed = fetch_pages<Row>(client, std::move(request), *limit, take_rows, next_after);
  if (!listed) return fail(std::move(listed.error()));
  return list_outcome(*listed, text);
}

}  // namespace berth::ctl
