// Unix sockets for talking to processes of this host, and who is at the other end.
//
// SOCK_SEQPACKET keeps message boundaries, which passing descriptors needs. All descriptors are
// CLOEXEC.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "common/error.h"
#include "common/time.h"
#include "common/unique_fd.h"

namespace berth {

// What the kernel's sockaddr_un holds, without its final NUL.
inline constexpr size_t kUnixPathLengthMax = 107;

// Removes the socket file of a listener that is gone, so that the path can be listened at again.
// Errors: kNameInUse when somebody listens there; kIoError when the file is no socket.
Result<> replace_stale_socket(const std::string& path);

// Listens at `path` with permissions `mode`. A socket file that nobody listens on any more is
// replaced. Errors: kNameInUse when somebody listens there; kInvalidConfig for a path that is empty
// or too long; kIoError otherwise.
Result<UniqueFd> listen_seqpacket(const std::string& path, mode_t mode);
// Errors: kUnavailable when nobody listens, kInvalidConfig for a bad path, kIoError otherwise.
Result<UniqueFd> connect_seqpacket(const std::string& path);
// Waits for the next connection unless the listener is non-blocking. Errors: kIoError.
Result<UniqueFd> accept_connection(int listener);
// Two connected ends.
Result<std::pair<UniqueFd, UniqueFd>> socket_pair_seqpacket();

// Bounds every later send and receive on the socket. Errors: kIoError.
Result<> set_socket_timeout(int socket, Duration timeout);

struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};
// Who connected, as the kernel recorded it at connect time. The pid may have been reused since.
Result<PeerCredentials> peer_credentials(int socket);
// A pidfd of the peer: from the socket where the kernel can (SO_PEERPIDFD), which cannot hit a
// reused pid, else opened by pid. Errors: kIoError; the peer may already be gone.
Result<UniqueFd> peer_pidfd(int socket);

}  // namespace berth
