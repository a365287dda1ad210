// From the bytes of one HTTP request to the bytes of its answer, without any socket. Free functions
// without state, for the server's one thread and for tests.
#pragma once

#include <string>
#include <string_view>

#include "common/http_server.h"

namespace berth {

// Whether there is enough to answer: the empty line came, or more than a request may have.
bool is_http_head_complete(std::string_view bytes);

// The whole answer, status line to body, to a request whose head is complete.
std::string answer_http(std::string_view request, const HttpRoutes& routes);

}  // namespace berth
