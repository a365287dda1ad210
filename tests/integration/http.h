// A plain HTTP client for the tests: one GET, and /metrics as numbers by series. Blocks until the
// server closes the connection.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/unique_fd.h"

namespace berth::testing {

struct HttpAnswer {
  int status = 0;  // zero: not reached
  std::string body;
};
HttpAnswer http_get(uint16_t port, const std::string& path);
// A connection to 127.0.0.1; not valid when it was refused.
UniqueFd connect_to(uint16_t port);

// Series as printed, labels included: `berth_pool_bytes{pool="w0-cpu",state="ready"}`.
using Metrics = std::map<std::string, double>;
Metrics scrape(uint16_t port);

}  // namespace berth::testing
