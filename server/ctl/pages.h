// Reading a whole list through the paged List calls, for as many rows as are wanted. A list that
// changes meanwhile is not a snapshot: rows come and go between pages, but none is shown twice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "server/ctl/admin_client.h"

namespace berth::ctl {

// The server's bound on one page.
inline constexpr uint64_t kPageRowsMax = 10'000;

template <class Row>
struct Listed {
  std::vector<Row> rows;
  bool more = false;  // rows beyond the limit
};

// Fetches pages until the list ends or `limit` rows are there; a limit of zero is none. `take_rows`
// moves the rows out of an answer, `next_after` says where the page behind it begins.
template <class Row, class Request, class TakeRows, class NextAfter>
Answer<Listed<Row>> fetch_pages(AdminClient& client, Request request, uint64_t limit,
                                TakeRows take_rows, NextAfter next_after) {
  Listed<Row> listed;
  while (true) {
    const uint64_t wanted = limit == 0 ? kPageRowsMax : limit - listed.rows.size();
    request.set_limit(static_cast<uint32_t>(std::min(wanted, kPageRowsMax)));
    auto answer = client.call(request);
    if (!answer) return fail(std::move(answer.error()));
    for (Row& row : *take_rows(*answer)) listed.rows.push_back(std::move(row));
    listed.more = answer->more();
    if (!listed.more || (limit != 0 && listed.rows.size() >= limit)) return listed;
    const uint64_t after = next_after(*answer, listed.rows);
    // Asking for the same page again would never end.
    if (after <= request.after())
      return fail({ExitCode::kRefused,
                   "the server's list does not advance past id " + std::to_string(request.after()),
                   "A bug in the server; report it with its log.", "internal"});
    request.set_after(after);
  }
}

}  // namespace berth::ctl
