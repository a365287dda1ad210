#include "worker/name_claim.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "common/os_error.h"

namespace berth::worker {
namespace {

// FNV-1a: the same in every build, so that two versions agree.
std::string hash_text(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return std::to_string(hash);
}

}  // namespace

Result<UniqueFd> claim_name(const std::string& server, const std::string& node,
                            const std::string& name) {
  // An abstract name starts with a zero byte; addresses and nodes can be longer than one may be.
  const std::string path =
      std::string(1, '\0') + "berth-worker/" + hash_text(server + "\n" + node) + "/" + name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  UniqueFd socket_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket_fd &&
      bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0) {
    return socket_fd;
  }
  if (errno != EADDRINUSE) return refuse_os("claim the name " + name);
  return refuse(Reason::kNameInUse,
                "a live worker named " + name + " of node " + node + " and server " + server +
                    " runs on this host, with another runtime_directory; stop it, or choose "
                    "another worker.name");
}

}  // namespace berth::worker
