// The HTTP server: answers, refusals, bounds, and peers that are slow or hostile.
#include "common/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <stdexcept>

#include "common/http_message.h"
#include "common/unique_fd.h"
#include "tests/unit/common/fake_clock.h"

namespace berth {
namespace {

const Address kAnyPort{AddressKind::kTcp, "127.0.0.1", 0, ""};

HttpRoutes example_routes() {
  return {
      {"/metrics",
       [](const HttpRequest&) {
         return HttpResponse{200, "text/plain", "berth_up 1\n"};
       }},
      {"/readyz",
       [](const HttpRequest&) {
         return HttpResponse{503, "text/plain", "no store\n"};
       }},
      {"/echo",
       [](const HttpRequest& r) {
         return HttpResponse{200, "text/plain", r.query};
       }},
      {"/large",
       [](const HttpRequest&) {
         return HttpResponse{200, "text/plain", std::string(16 << 20, 'x')};
       }},
      {"/broken", [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("no room"); }},
  };
}

struct Rig {
  testing::FakeClock clock;
  std::unique_ptr<HttpServer> server = HttpServer::start(kAnyPort, example_routes(), clock).value();

  UniqueFd connect() const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(server->address().port);
    REQUIRE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return fd;
  }
  UniqueFd connect_and_send(const std::string& text) const {
    UniqueFd fd = connect();
    REQUIRE(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(text.size()));
    return fd;
  }
  std::string get(const std::string& path) const {
    return rest_of(connect_and_send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"));
  }
  // Everything until the server closes.
  static std::string rest_of(const UniqueFd& fd) {
    std::string text;
    char block[65536];
    for (ssize_t got = 0; (got = recv(fd.get(), block, sizeof block, 0)) > 0;)
      text.append(block, static_cast<size_t>(got));
    return text;
  }
};

std::string answer(const std::string& request) { return answer_http(request, example_routes()); }
std::string status_of(const std::string& response) {
  return response.substr(0, response.find("\r\n"));
}
std::string body_of(const std::string& response) {
  return response.substr(response.find("\r\n\r\n") + 4);
}

}  // namespace

TEST_CASE("a page is answered with its length, and the connection closes", "[common][http]") {
  const Rig rig;
  const std::string response = rig.get("/metrics");
  CHECK(status_of(response) == "HTTP/1.1 200 OK");
  CHECK(response.find("\r\nContent-Length: 11\r\n") != std::string::npos);
  CHECK(response.find("\r\nConnection: close\r\n") != std::string::npos);
  CHECK(body_of(response) == "berth_up 1\n");
}

TEST_CASE("a handler's status and query go through", "[common][http]") {
  CHECK(status_of(answer("GET /readyz HTTP/1.1\r\n\r\n")) == "HTTP/1.1 503 Service Unavailable");
  CHECK(body_of(answer("GET /echo?a=1&b HTTP/1.0\r\n\r\n")) == "a=1&b");
}

TEST_CASE("HEAD gets the length without the body", "[common][http]") {
  const std::string response = answer("HEAD /metrics HTTP/1.1\r\n\r\n");
  CHECK(response.find("Content-Length: 11") != std::string::npos);
  CHECK(body_of(response).empty());
}

TEST_CASE("an unknown page names the pages that exist", "[common][http]") {
  const std::string response = answer("GET /../etc/passwd HTTP/1.1\r\n\r\n");
  CHECK(status_of(response) == "HTTP/1.1 404 Not Found");
  CHECK(body_of(response).find("/metrics") != std::string::npos);
}

TEST_CASE("other methods are refused", "[common][http]") {
  const std::string response = answer("POST /metrics HTTP/1.1\r\n\r\n");
  CHECK(status_of(response) == "HTTP/1.1 405 Method Not Allowed");
  CHECK(response.find("\r\nAllow: GET, HEAD\r\n") != std::string::npos);
}

TEST_CASE("what is no HTTP request is refused", "[common][http]") {
  const std::string request =
      GENERATE(as<std::string>(), "\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n",
               "GET metrics HTTP/1.1\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n",
               "GET /metrics HTTP/2\r\n\r\n", "GET  HTTP/1.1\r\n\r\n");
  CAPTURE(request);
  CHECK(status_of(answer(request)) == "HTTP/1.1 400 Bad Request");
}

TEST_CASE("a request past its bound is answered and not collected further", "[common][http]") {
  CHECK_FALSE(is_http_head_complete(std::string(kHttpRequestBytesMax, 'x')));
  CHECK(is_http_head_complete(std::string(kHttpRequestBytesMax + 1, 'x')));
  CHECK(status_of(answer(std::string(kHttpRequestBytesMax + 1, 'x'))) ==
        "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST_CASE("a handler that throws costs one answer and not the process", "[common][http]") {
  const Rig rig;
  CHECK(status_of(rig.get("/broken")) == "HTTP/1.1 500 Internal Server Error");
  CHECK(status_of(rig.get("/metrics")) == "HTTP/1.1 200 OK");
}

TEST_CASE("a request that comes in pieces is answered", "[common][http]") {
  const Rig rig;
  const UniqueFd fd = rig.connect_and_send("GET /met");
  CHECK(status_of(rig.get("/readyz")) == "HTTP/1.1 503 Service Unavailable");
  const std::string rest = "rics HTTP/1.1\r\n\r\n";
  REQUIRE(send(fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL) > 0);
  CHECK(body_of(Rig::rest_of(fd)) == "berth_up 1\n");
}

TEST_CASE("a taken port is an error that names the address", "[common][http]") {
  const Rig rig;
  const auto second = HttpServer::start(rig.server->address(), example_routes(), rig.clock);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().reason == Reason::kIoError);
  CHECK(second.error().message ==
        "cannot listen at " + rig.server->address().text() + ": Address already in use");
}

TEST_CASE("an address that is not ours or not a number is an error", "[common][http]") {
  const testing::FakeClock clock;
  const Address foreign{AddressKind::kTcp, "203.0.113.1", 0, ""};
  CHECK(HttpServer::start(foreign, {}, clock)
            .error()
            .message.rfind("cannot listen at 203.0.113.1:0: ", 0) == 0);
  const Address named{AddressKind::kTcp, "metrics.example", 0, ""};
  CHECK_FALSE(HttpServer::start(named, {}, clock).has_value());
  const Address local{AddressKind::kUnix, "", 0, "/tmp/x"};
  CHECK_FALSE(HttpServer::start(local, {}, clock).has_value());
}

TEST_CASE("fifty scrapers that stand still delay nobody", "[common][http]") {
  const Rig rig;
  std::vector<UniqueFd> slow;
  for (int i = 0; i < 25; ++i) slow.push_back(rig.connect_and_send("GET /metrics HTTP/1.1\r\n"));
  for (int i = 0; i < 25; ++i) slow.push_back(rig.connect_and_send("GET /large HTTP/1.1\r\n\r\n"));
  CHECK(body_of(rig.get("/metrics")) == "berth_up 1\n");
}

TEST_CASE("a slow reader still gets all of a large page", "[common][http]") {
  const Rig rig;
  const UniqueFd reader = rig.connect_and_send("GET /large HTTP/1.1\r\n\r\n");
  CHECK(status_of(rig.get("/readyz")) == "HTTP/1.1 503 Service Unavailable");
  CHECK(body_of(Rig::rest_of(reader)).size() == 16 << 20);
}

TEST_CASE("at the bound the oldest connection makes room for the newest", "[common][http]") {
  const Rig rig;
  std::vector<UniqueFd> idle;
  for (size_t i = 0; i < kHttpConnectionsMax; ++i) idle.push_back(rig.connect());
  CHECK(body_of(rig.get("/metrics")) == "berth_up 1\n");
  CHECK(Rig::rest_of(idle.front()).empty());
}

TEST_CASE("a connection past its deadline is closed", "[common][http]") {
  Rig rig;
  const UniqueFd idle = rig.connect_and_send("GET /met");
  rig.get("/metrics");  // by now the idle one was accepted
  rig.clock.advance(kHttpReadWithin);
  rig.get("/metrics");  // wakes the server, which looks at its deadlines
  CHECK(Rig::rest_of(idle).empty());
}

TEST_CASE("the server stops while connections are open", "[common][http]") {
  Rig rig;
  const UniqueFd idle = rig.connect();
  const UniqueFd reader = rig.connect_and_send("GET /large HTTP/1.1\r\n\r\n");
  rig.server.reset();
  CHECK(Rig::rest_of(idle).empty());
}

}  // namespace berth
