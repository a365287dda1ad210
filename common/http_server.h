// The small HTTP server behind /metrics, /healthz and /readyz. One thread, poll(), GET and HEAD
// only, one request per connection. It is bounded everywhere and never waits for a peer: whoever
// reads or writes slowly holds a buffer until its deadline, and nothing else.
//
// At the bound of connections the oldest is closed for the newest, so that a handful of stuck
// scrapers cannot lock the others out. A port that is taken is an Error at start, never an
// exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/address.h"
#include "common/clock.h"
#include "common/error.h"

namespace berth {

inline constexpr size_t kHttpConnectionsMax = 64;
inline constexpr size_t kHttpRequestBytesMax = 8192;
inline constexpr Duration kHttpReadWithin = seconds(5);    // from accept to the whole request
inline constexpr Duration kHttpWriteWithin = seconds(30);  // from request to the last byte

struct HttpRequest {
  std::string path;   // "/metrics", as sent, without the query
  std::string query;  // after '?', as sent
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Runs on the server's thread; should take milliseconds. An exception becomes a 500.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;
// By exact path.
using HttpRoutes = std::map<std::string, HttpHandler>;

class HttpServer {
 public:
  virtual ~HttpServer() = default;  // stops the thread and closes every connection

  // Listens at a TCP address given by number or as localhost. `clock` must outlive the server.
  // Errors: kIoError naming the address.
  static Result<std::unique_ptr<HttpServer>> start(const Address& address, HttpRoutes routes,
                                                   const Clock& clock);

  // With the real port where 0 was asked for.
  virtual const Address& address() const = 0;
};

}  // namespace berth
