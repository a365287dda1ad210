#include "common/rpc_acceptor.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "common/log.h"
#include "common/os_error.h"
#include "common/rpc_settings.h"

namespace berth {
namespace {

// How long the listeners rest when not even a refusal can be given.
constexpr int kRestMillis = 100;
constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
// Beside the quarter of all descriptors that the store may take.
constexpr uint64_t kDescriptorsKept = 16;

// The kernel gives out the lowest free number, so the number of a new descriptor tells how many
// there are. Those from here on are not for connections.
int first_kept_descriptor() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return INT32_MAX;
  const uint64_t kept = limit.rlim_cur / 4 + kDescriptorsKept;
  return static_cast<int>(limit.rlim_cur > kept ? limit.rlim_cur - kept : limit.rlim_cur);
}

tl::unexpected<Error> refuse_listen(const Address& address) {
  return refuse_os("listen at " + address.text());
}

// gRPC wants small messages out at once, and dead peers noticed; accepted sockets inherit both.
void set_tcp_options(int socket) {
  const int on = 1;
  const auto timeout = static_cast<unsigned>(kRpcKeepaliveWithin.millis);
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
  // A restart must not wait for the last run's connections to time out.
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

uint16_t port_of(int socket) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

void set_port(sockaddr* name, uint16_t port) {
  if (name->sa_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(name)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(name)->sin_port = htons(port);
}

// Not an error where a name has several addresses: this host may lack one of the families.
bool is_family_missing(int code) { return code == EAFNOSUPPORT || code == EADDRNOTAVAIL; }

Result<RpcSockets> listen_tcp(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int code = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found); code != 0)
    return refuse(Reason::kIoError,
                  "cannot listen at " + address.text() + ": " + gai_strerror(code));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  RpcSockets listening{{}, address};
  for (addrinfo* one = found; one; one = one->ai_next) {
    UniqueFd socket(::socket(one->ai_family, kSocketFlags, 0));
    if (socket) set_tcp_options(socket.get());
    set_port(one->ai_addr, listening.address.port);
    if (!socket || bind(socket.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        listen(socket.get(), SOMAXCONN) != 0) {
      if (is_family_missing(errno) && (one->ai_next || !listening.sockets.empty())) continue;
      return refuse_listen(address);
    }
    listening.address.port = port_of(socket.get());
    listening.sockets.push_back(std::move(socket));
  }
  return listening;
}

Result<RpcSockets> listen_unix(const Address& address, mode_t mode) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof name.sun_path)
    return refuse(Reason::kInvalidConfig, address.text() + ": the path is too long; accepted: " +
                                              std::to_string(sizeof name.sun_path - 1) +
                                              " characters");
  std::memcpy(name.sun_path, address.path.data(), address.path.size());
  UniqueFd socket(::socket(AF_UNIX, kSocketFlags, 0));
  // Nobody can connect before the permissions are set, because nobody listens yet.
  const bool listening =
      socket && bind(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0 &&
      chmod(address.path.c_str(), mode) == 0 && listen(socket.get(), SOMAXCONN) == 0;
  if (!listening) return refuse_listen(address);
  RpcSockets sockets{{}, address};
  sockets.sockets.push_back(std::move(socket));
  return sockets;
}

}  // namespace

Result<RpcSockets> listen_rpc(const Address& address, mode_t socket_mode) {
  return address.kind == AddressKind::kUnix ? listen_unix(address, socket_mode)
                                            : listen_tcp(address);
}

RpcAcceptor::RpcAcceptor(std::vector<RpcSockets> listeners, std::unique_ptr<RpcIntake> intake,
                         std::function<void()> on_refused)
    : listeners_(std::move(listeners)),
      intake_(std::move(intake)),
      on_refused_(std::move(on_refused)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { run(); });
}

RpcAcceptor::~RpcAcceptor() {
  const uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
  thread_.join();
  for (const RpcSockets& listener : listeners_)
    if (listener.address.kind == AddressKind::kUnix) unlink(listener.address.path.c_str());
}

void RpcAcceptor::run() {
  std::vector<pollfd> entries{{stop_.get(), POLLIN, 0}};
  for (const RpcSockets& listener : listeners_)
    for (const UniqueFd& socket : listener.sockets) entries.push_back({socket.get(), POLLIN, 0});
  for (;;) {
    const size_t watched = is_resting_ ? 1 : entries.size();
    if (poll(entries.data(), watched, is_resting_ ? kRestMillis : -1) < 0) continue;
    if (entries[0].revents != 0) return;
    is_resting_ = false;
    for (size_t i = 1; i < entries.size(); ++i)
      while (accept_one(entries[i].fd)) {
      }
  }
}

bool RpcAcceptor::accept_one(int listener) {
  const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (peer < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      is_resting_ = true;
    return errno == EINTR || errno == ECONNABORTED;
  }
  if (peer >= first_kept_descriptor()) {
    refuse(peer);
    return true;
  }
  is_crowded_ = false;
  RpcIntake::NewConnectionParameters connection;
  connection.listener_fd = listener;
  connection.fd = peer;
  intake_->HandleNewConnection(&connection);
  return true;
}

void RpcAcceptor::refuse(int peer) {
  close(peer);
  if (on_refused_) on_refused_();
  if (std::exchange(is_crowded_, true)) return;
  log::warning("connections_refused",
               {{"descriptor", peer}, {"why", "too few descriptors are left; raise LimitNOFILE"}});
}

}  // namespace berth
