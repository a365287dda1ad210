#include "tests/integration/relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

namespace berth::testing {
namespace {

constexpr size_t kPendingMax = 64 << 10;  // as much as a socket buffer would hold

UniqueFd connect_to_socket(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    fd.reset();
  return fd;
}

// Closing then sends a reset instead of a farewell.
void make_abrupt(const UniqueFd& fd) {
  const linger abrupt{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &abrupt, sizeof abrupt);
}

// False when the connection is over.
bool move_bytes(const UniqueFd& from, const UniqueFd& to, std::string& pending) {
  if (pending.size() < kPendingMax) {
    char buffer[kPendingMax];
    const ssize_t count = recv(from.get(), buffer, kPendingMax - pending.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (count > 0) pending.append(buffer, static_cast<size_t>(count));
  }
  if (pending.empty()) return true;
  const ssize_t count = send(to.get(), pending.data(), pending.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  pending.erase(0, static_cast<size_t>(count));
  return true;
}

}  // namespace

Relay::Relay(std::string server_socket)
    : server_socket_(std::move(server_socket)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      waker_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(waker_.valid());
  REQUIRE(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener_.get(), 64) == 0);
  REQUIRE(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  {
    const std::lock_guard lock(mutex_);
    orders_.stops = true;
  }
  wake();
  thread_.join();
}

void Relay::reset_all() {
  {
    const std::lock_guard lock(mutex_);
    orders_.resets = true;
  }
  wake();
}

void Relay::refuse_new(bool refuses) {
  {
    const std::lock_guard lock(mutex_);
    orders_.refuses = refuses;
  }
  wake();
}

void Relay::freeze(Way way) {
  {
    const std::lock_guard lock(mutex_);
    orders_.freezes_to_server = way != Way::kToWorker;
    orders_.freezes_to_worker = way != Way::kToServer;
  }
  wake();
}

void Relay::thaw() {
  {
    const std::lock_guard lock(mutex_);
    orders_.freezes_to_server = orders_.freezes_to_worker = false;
  }
  wake();
}

void Relay::wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(waker_.get(), &one, sizeof one);
}

Relay::Orders Relay::take_orders() {
  const std::lock_guard lock(mutex_);
  const Orders orders = orders_;
  orders_.resets = false;
  return orders;
}

void Relay::run() {
  for (;;) {
    const Orders orders = take_orders();
    if (orders.stops) return;
    if (orders.resets) {
      for (const Connection& connection : connections_) {
        make_abrupt(connection.worker);
        make_abrupt(connection.server);
      }
      connections_.clear();
    }
    accept_one(orders);
    pass_on(orders);
    wait(orders);
  }
}

void Relay::wait(const Orders& orders) {
  std::vector<pollfd> watched{{waker_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  const auto watch = [&](const UniqueFd& from, const UniqueFd& to, const Stream& stream) {
    if (stream.pending.size() < kPendingMax) watched.push_back({from.get(), POLLIN, 0});
    if (!stream.pending.empty()) watched.push_back({to.get(), POLLOUT, 0});
  };
  for (const Connection& c : connections_) {
    if (!orders.freezes_to_server) watch(c.worker, c.server, c.to_server);
    if (!orders.freezes_to_worker) watch(c.server, c.worker, c.to_worker);
  }
  poll(watched.data(), watched.size(), -1);
  uint64_t woken = 0;
  [[maybe_unused]] const ssize_t count = read(waker_.get(), &woken, sizeof woken);
}

void Relay::accept_one(const Orders& orders) {
  UniqueFd worker(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!worker.valid()) return;
  make_abrupt(worker);
  if (orders.refuses) return;
  UniqueFd server = connect_to_socket(server_socket_);
  if (!server.valid()) return;  // the server is away: the worker sees a reset
  connections_.push_back({std::move(worker), std::move(server), {}, {}});
}

void Relay::pass_on(const Orders& orders) {
  std::erase_if(connections_, [&](Connection& c) {
    return (!orders.freezes_to_server && !move_bytes(c.worker, c.server, c.to_server.pending)) ||
           (!orders.freezes_to_worker && !move_bytes(c.server, c.worker, c.to_worker.pending));
  });
}

}  // namespace berth::testing
