#include "common/unix_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "common/os_error.h"
#include "common/process.h"
#include "common/text.h"

namespace berth {
namespace {

constexpr int kBacklog = 64;  // connections that wait for accept; more are refused by the kernel
constexpr int kSoPeerPidfd = 77;  // SO_PEERPIDFD, Linux 6.5; Debian 12's headers lack the name

Result<sockaddr_un> address_of(const std::string& path) {
  if (path.empty() || path.size() > kUnixPathLengthMax || path.find('\0') != std::string::npos)
    return refuse(Reason::kInvalidConfig, name_and_value("socket path", path) +
                                              ": accepted: a path of 1 to " +
                                              std::to_string(kUnixPathLengthMax) + " characters");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

UniqueFd new_socket() { return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

}  // namespace

// A socket file outlives its process. Only one that refuses connections is removed: it is proven to
// have no listener. EPROTOTYPE comes from a live listener of another kind.
Result<> replace_stale_socket(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return {};
  if (!S_ISSOCK(facts.st_mode))
    return refuse(Reason::kIoError, quote(path) + " exists and is not a socket");
  const UniqueFd probe = new_socket();
  const bool connected = connect(probe.get(), generic(*address), sizeof *address) == 0;
  if (connected || errno == EPROTOTYPE)
    return refuse(Reason::kNameInUse, "another process listens at " + quote(path));
  if (errno != ECONNREFUSED) return refuse_os("examine socket " + quote(path));
  if (unlink(path.c_str()) != 0) return refuse_os("replace " + quote(path));
  return {};
}

Result<UniqueFd> listen_seqpacket(const std::string& path, mode_t mode) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  if (const auto replaced = replace_stale_socket(path); !replaced)
    return tl::unexpected(replaced.error());
  UniqueFd listener = new_socket();
  if (!listener || bind(listener.get(), generic(*address), sizeof *address) != 0)
    return refuse_os("listen at " + quote(path));
  // The mode is set before listen(): nobody can connect while the umask still decides.
  if (chmod(path.c_str(), mode) != 0 || listen(listener.get(), kBacklog) != 0)
    return refuse_os("listen at " + quote(path));
  return listener;
}

Result<UniqueFd> connect_seqpacket(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return tl::unexpected(address.error());
  UniqueFd connection = new_socket();
  if (!connection) return refuse_os("make a socket");
  if (connect(connection.get(), generic(*address), sizeof *address) == 0) return connection;
  if (errno == ENOENT || errno == ECONNREFUSED)
    return refuse(Reason::kUnavailable, "nobody listens at " + quote(path));
  return refuse_os("connect to " + quote(path));
}

Result<UniqueFd> accept_connection(int listener) {
  int fd = -1;
  do {
    fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return refuse_os("accept a connection");
  return UniqueFd(fd);
}

Result<std::pair<UniqueFd, UniqueFd>> socket_pair_seqpacket() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return refuse_os("make a socket pair");
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Result<> set_socket_timeout(int socket, Duration timeout) {
  const timeval value{timeout.millis / 1000, timeout.millis % 1000 * 1000};
  for (int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    if (setsockopt(socket, SOL_SOCKET, option, &value, sizeof value) != 0)
      return refuse_os("set a socket's timeout");
  return {};
}

Result<PeerCredentials> peer_credentials(int socket) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return refuse_os("read a peer's credentials");
  return PeerCredentials{credentials.pid, credentials.uid, credentials.gid};
}

Result<UniqueFd> peer_pidfd(int socket) {
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  if (getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &pidfd, &length) == 0) return UniqueFd(pidfd);
  if (errno != ENOPROTOOPT) return refuse_os("open a peer's pidfd");
  const auto credentials = peer_credentials(socket);
  if (!credentials) return tl::unexpected(credentials.error());
  return open_pidfd(credentials->pid);
}

}  // namespace berth
