// One message with file descriptors over a SOCK_SEQPACKET unix socket (SCM_RIGHTS). A message
// arrives whole or not at all: what would be cut is refused, and descriptors that came with it are
// closed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

// A payload names what the descriptors are; it carries no data. The kernel itself allows 253
// descriptors.
inline constexpr size_t kDescriptorPayloadBytesMax = 4096;
inline constexpr size_t kDescriptorsPerMessageMax = 64;

struct DescriptorMessage {
  std::string payload;
  std::vector<UniqueFd> descriptors;  // CLOEXEC, in the order they were sent
};

// The receiver gets duplicates: the sender keeps its own and closes them when it likes. An empty
// payload is not allowed, because it would read as the end of the conversation. Errors:
// kInvalidArgument past a bound; kUnavailable when the peer is gone; kDeadlineExceeded after the
// socket's timeout; kIoError otherwise.
Result<> send_descriptors(int socket, std::string_view payload, std::span<const int> descriptors);

// Waits for the next message. Errors: kUnavailable when the peer closed; kInvalidArgument when the
// message is larger than the bounds; kDeadlineExceeded after the socket's timeout; kIoError
// otherwise.
Result<DescriptorMessage> receive_descriptors(int socket);

}  // namespace berth
