#include "common/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <thread>
#include <vector>

#include "common/http_message.h"
#include "common/os_error.h"
#include "common/text.h"
#include "common/unique_fd.h"

namespace berth {
namespace {

// How long a listener rests when the process has no descriptors left.
constexpr int kAcceptRestMillis = 100;

struct Connection {
  UniqueFd socket;
  std::string request;
  std::string response;  // empty while the request is read
  size_t sent = 0;
  int64_t deadline_millis = 0;
  bool finished = false;
};

Result<UniqueFd> listen_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  // Numbers only, so that no start waits for a name server.
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST;
  addrinfo* found = nullptr;
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  const std::string port = std::to_string(address.port);
  if (const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); code != 0)
    return refuse(Reason::kIoError,
                  "cannot listen at " + address.text() + ": " + gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  UniqueFd listener(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  // A restart must not wait for the last run's connections to time out.
  const bool listening =
      listener && setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(listener.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      listen(listener.get(), static_cast<int>(kHttpConnectionsMax)) == 0;
  if (!listening) return refuse_os("listen at " + address.text());
  return listener;
}

uint16_t port_of(int listener) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  const uint16_t port = bound.ss_family == AF_INET6
                            ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  return ntohs(port);
}

class PollHttpServer final : public HttpServer {
 public:
  PollHttpServer(UniqueFd listener, UniqueFd stop, Address address, HttpRoutes routes,
                 const Clock& clock)
      : listener_(std::move(listener)),
        stop_(std::move(stop)),
        address_(std::move(address)),
        routes_(std::move(routes)),
        clock_(clock) {
    address_.port = port_of(listener_.get());
    thread_ = std::thread([this] { serve(); });
  }

  ~PollHttpServer() override {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

  const Address& address() const override { return address_; }

 private:
  void serve() {
    for (;;) {
      std::vector<pollfd> entries = poll_entries();
      if (poll(entries.data(), entries.size(), poll_timeout_millis()) < 0) continue;
      if (entries[0].revents != 0) return;
      auto entry = entries.begin() + 2;
      for (Connection& connection : connections_) {
        if ((entry++)->revents != 0) advance(connection);
      }
      const int64_t now = clock_.monotonic_millis();
      connections_.remove_if(
          [&](const Connection& c) { return c.finished || c.deadline_millis <= now; });
      accept_waiting_ = false;
      if (entries[1].revents != 0) accept_new();
    }
  }

  std::vector<pollfd> poll_entries() const {
    std::vector<pollfd> entries{{stop_.get(), POLLIN, 0},
                                {accept_waiting_ ? -1 : listener_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_)
      entries.push_back({connection.socket.get(),
                         static_cast<short>(connection.response.empty() ? POLLIN : POLLOUT), 0});
    return entries;
  }

  int poll_timeout_millis() const {
    if (accept_waiting_) return kAcceptRestMillis;
    if (connections_.empty()) return -1;
    int64_t nearest = connections_.front().deadline_millis;
    for (const Connection& c : connections_) nearest = std::min(nearest, c.deadline_millis);
    return static_cast<int>(std::max<int64_t>(nearest - clock_.monotonic_millis(), 0));
  }

  void accept_new() {
    for (size_t i = 0; i < kHttpConnectionsMax; ++i) {
      UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        accept_waiting_ = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
        return;
      }
      if (connections_.size() >= kHttpConnectionsMax) connections_.pop_front();
      Connection& connection = connections_.emplace_back();
      connection.socket = std::move(socket);
      connection.deadline_millis = clock_.monotonic_millis() + kHttpReadWithin.millis;
    }
  }

  void advance(Connection& connection) {
    if (connection.response.empty()) read_some(connection);
    if (!connection.response.empty()) write_some(connection);
  }

  void read_some(Connection& connection) {
    char block[4096];
    const ssize_t got = recv(connection.socket.get(), block, sizeof block, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      connection.finished = true;
      return;
    }
    connection.request.append(block, static_cast<size_t>(got));
    if (!is_http_head_complete(connection.request)) return;
    connection.response = answer_http(connection.request, routes_);
    connection.deadline_millis = clock_.monotonic_millis() + kHttpWriteWithin.millis;
  }

  void write_some(Connection& connection) {
    const std::string& response = connection.response;
    while (connection.sent < response.size()) {
      const ssize_t sent = send(connection.socket.get(), response.data() + connection.sent,
                                response.size() - connection.sent, MSG_NOSIGNAL);
      if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (sent < 0) break;
      connection.sent += static_cast<size_t>(sent);
    }
    connection.finished = true;
  }

  UniqueFd listener_;
  UniqueFd stop_;
  Address address_;
  HttpRoutes routes_;
  const Clock& clock_;
  // The rest belongs to the thread.
  std::list<Connection> connections_;  // oldest first
  bool accept_waiting_ = false;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const Address& address, HttpRoutes routes,
                                                      const Clock& clock) {
  if (address.kind != AddressKind::kTcp)
    return refuse(Reason::kInvalidConfig,
                  name_and_value("http listener", address.text()) + ": accepted: HOST:PORT");
  auto listener = listen_tcp(address);
  if (!listener) return tl::unexpected(listener.error());
  UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop) return refuse_os("make an event descriptor");
  return std::make_unique<PollHttpServer>(std::move(*listener), std::move(stop), address,
                                          std::move(routes), clock);
}

}  // namespace berth
