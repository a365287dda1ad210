#include "worker/local/descriptor_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "common/descriptor_passing.h"
#include "common/log.h"
#include "common/os_error.h"
#include "common/unix_socket.h"

namespace berth::worker {
namespace {

constexpr int kRoundMillis = 1000;
constexpr int kTicketRounds = 5;
constexpr size_t kTicketBytes = 16;

bool is_readable(const pollfd& entry) { return (entry.revents & ~POLLNVAL) != 0; }

}  // namespace

Result<std::unique_ptr<DescriptorServer>> DescriptorServer::start(const std::string& path,
                                                                  LifeKeeper& keeper,
                                                                  size_t connections_max,
                                                                  OnSuspect on_suspect) {
  Result<UniqueFd> listener = listen_seqpacket(path, 0660);
  if (!listener) return tl::unexpected(listener.error());
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return refuse_os("make an eventfd");
  return std::unique_ptr<DescriptorServer>(new DescriptorServer(
      std::move(*listener), std::move(wake), path, keeper, connections_max, std::move(on_suspect)));
}

DescriptorServer::DescriptorServer(UniqueFd listener, UniqueFd wake, std::string path,
                                   LifeKeeper& keeper, size_t connections_max, OnSuspect on_suspect)
    : listener_(std::move(listener)),
      wake_(std::move(wake)),
      path_(std::move(path)),
      keeper_(keeper),
      connections_max_(connections_max),
      on_suspect_(std::move(on_suspect)),
      thread_([this] { run(); }) {}

DescriptorServer::~DescriptorServer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  const uint64_t one = 1;
  if (write(wake_.get(), &one, sizeof one) < 0) log::warning("descriptor_server_not_woken");
  thread_.join();
  unlink(path_.c_str());
}

void DescriptorServer::expect(const std::string& ticket, Grant grant) {
  const std::lock_guard lock(mutex_);
  grants_[ticket] = std::move(grant);
}

void DescriptorServer::forget(const std::string& ticket) {
  const std::lock_guard lock(mutex_);
  grants_.erase(ticket);
}

// Two entries a connection: its socket and its pidfd (-1 is skipped by poll).
void DescriptorServer::run() {
  while (true) {
    std::vector<pollfd> entries{{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      entries.push_back({connection.socket.get(), POLLIN, 0});
      entries.push_back({connection.pidfd.get(), POLLIN, 0});
    }
    const int ready = poll(entries.data(), entries.size(), kRoundMillis);
    {
      const std::lock_guard lock(mutex_);
      if (is_stopping_) return;
    }
    std::vector<Connection> kept;
    for (size_t i = 0; i < connections_.size(); ++i) {
      Connection& connection = connections_[i];
      bool is_open = true;
      if (ready > 0 && is_readable(entries[2 + 2 * i + 1])) {
        connection.pidfd.reset();
        suspect(connection);
      }
      if (ready > 0 && is_readable(entries[2 + 2 * i])) is_open = serve(connection);
      if (ready == 0 && !connection.client.valid() && --connection.rounds_left < 0) is_open = false;
      if (is_open) kept.push_back(std::move(connection));
    }
    connections_ = std::move(kept);
    if (ready > 0 && is_readable(entries[1])) accept_one();
  }
}

void DescriptorServer::accept_one() {
  Result<UniqueFd> socket = accept_connection(listener_.get());
  if (!socket) return log::warning("accept_failed", {{"message", socket.error().message}});
  if (connections_.size() >= connections_max_) {
    return log::warning("descriptor_connection_refused", {{"connections", connections_.size()}});
  }
  // Nothing here waits for a peer: what is read has arrived, what is written fits its buffer.
  if (!set_socket_timeout(socket->get(), milliseconds(kRoundMillis))) return;
  Connection connection;
  if (Result<UniqueFd> pidfd = peer_pidfd(socket->get())) connection.pidfd = std::move(*pidfd);
  connection.socket = std::move(*socket);
  connection.rounds_left = kTicketRounds;
  connections_.push_back(std::move(connection));
}

bool DescriptorServer::serve(Connection& connection) {
  Result<DescriptorMessage> message = receive_descriptors(connection.socket.get());
  if (message && !connection.client.valid() && message->payload.size() == kTicketBytes &&
      message->descriptors.empty()) {
    return answer_ticket(connection, message->payload);
  }
  suspect(connection);  // it ended, or speaks out of turn
  return false;
}

bool DescriptorServer::answer_ticket(Connection& connection, const std::string& ticket) {
  Grant grant;
  {
    const std::lock_guard lock(mutex_);
    auto found = grants_.extract(ticket);
    if (found.empty()) return false;
    grant = std::move(found.mapped());
  }
  if (grant.imported) {
    const std::vector<int> both{grant.imported->life.get(), grant.imported->memory.get()};
    if (const auto sent = send_descriptors(connection.socket.get(), "descriptors", both); !sent)
      log::warning("descriptors_not_sent",
                   {{"session", grant.client}, {"message", sent.error().message}});
    return false;  // the client's other connection is the one to watch
  }
  connection.client = grant.client;
  const std::optional<LifeLock> lock = keeper_.take(grant.life_name);
  if (!lock) return false;  // its Join ended meanwhile
  std::vector<int> descriptors{lock->descriptor()};
  descriptors.insert(descriptors.end(), grant.pools.begin(), grant.pools.end());
  for (size_t first = 0; first < descriptors.size(); first += kDescriptorsPerMessageMax) {
    const size_t count = std::min(kDescriptorsPerMessageMax, descriptors.size() - first);
    const auto sent = send_descriptors(connection.socket.get(), "descriptors",
                                       std::span<const int>(descriptors).subspan(first, count));
    if (sent) continue;
    log::warning("descriptors_not_sent",
                 {{"session", grant.client}, {"message", sent.error().message}});
    suspect(connection);
    return false;
  }
  return true;
}

void DescriptorServer::suspect(const Connection& connection) {
  if (connection.client.valid()) on_suspect_(connection.client);
}

}  // namespace berth::worker
