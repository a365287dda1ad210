#include "common/descriptor_passing.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

#include "common/os_error.h"

namespace berth {
namespace {

struct alignas(cmsghdr) ControlBuffer {
  char bytes[CMSG_SPACE(kDescriptorsPerMessageMax * sizeof(int))] = {};
};

tl::unexpected<Error> refuse_transfer(const std::string& attempt, int code) {
  if (code == EPIPE || code == ECONNRESET || code == ENOTCONN)
    return refuse(Reason::kUnavailable, "the peer has closed the socket");
  if (code == EAGAIN || code == EWOULDBLOCK)
    return refuse(Reason::kDeadlineExceeded, "timed out while trying to " + attempt);
  return refuse_os(attempt, code);
}

// Takes ownership first, whatever else is wrong with the message: nothing received may leak.
std::vector<UniqueFd> take_descriptors(msghdr& message) {
  std::vector<UniqueFd> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

Result<> send_descriptors(int socket, std::string_view payload, std::span<const int> descriptors) {
  if (payload.empty() || payload.size() > kDescriptorPayloadBytesMax)
    return refuse(Reason::kInvalidArgument, "a payload of " + std::to_string(payload.size()) +
                                                " bytes; accepted: 1 to " +
                                                std::to_string(kDescriptorPayloadBytesMax));
  if (descriptors.size() > kDescriptorsPerMessageMax)
    return refuse(Reason::kInvalidArgument, std::to_string(descriptors.size()) +
                                                " descriptors in one message; accepted: up to " +
                                                std::to_string(kDescriptorsPerMessageMax));
  iovec data{const_cast<char*>(payload.data()), payload.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return refuse_transfer("send descriptors", errno);
  return {};
}

Result<DescriptorMessage> receive_descriptors(int socket) {
  std::string payload(kDescriptorPayloadBytesMax, '\0');
  iovec data{payload.data(), payload.size()};
  ControlBuffer control;
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t received = -1;
  do {
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return refuse_transfer("receive descriptors", errno);
  std::vector<UniqueFd> descriptors = take_descriptors(message);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return refuse(
        Reason::kInvalidArgument,
        "a message with descriptors was larger than the bound, or our own descriptor limit "
        "was reached");
  if (received == 0) return refuse(Reason::kUnavailable, "the peer has closed the socket");
  payload.resize(static_cast<size_t>(received));
  return DescriptorMessage{std::move(payload), std::move(descriptors)};
}

}  // namespace berth
