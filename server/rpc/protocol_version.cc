#include "server/rpc/protocol_version.h"

#include <algorithm>
#include <string>

namespace berth::rpc {
namespace {

std::string range_text(ProtocolRange range) {
  if (range.oldest == range.newest) return "version " + std::to_string(range.newest);
  return "versions " + std::to_string(range.oldest) + " to " + std::to_string(range.newest);
}

}  // namespace

Result<uint32_t> negotiate(ProtocolRange theirs, ProtocolRange ours) {
  if (theirs.newest == 0)
    return refuse(Reason::kInvalidArgument, "versions.newest = 0: is missing; accepted: 1 or more");
  if (theirs.oldest == 0 || theirs.oldest > theirs.newest)
    return refuse(Reason::kInvalidArgument, "versions.oldest = " + std::to_string(theirs.oldest) +
                                                ": is not a range; accepted: 1 to " +
                                                std::to_string(theirs.newest));
  if (theirs.newest < ours.oldest)
    return refuse(Reason::kUnsupportedVersion, "the caller speaks protocol " + range_text(theirs) +
                                                   ", this server " + range_text(ours) +
                                                   ": upgrade the caller");
  if (theirs.oldest > ours.newest)
    return refuse(Reason::kUnsupportedVersion, "the caller speaks protocol " + range_text(theirs) +
                                                   ", this server " + range_text(ours) +
                                                   ": upgrade the server");
  return std::min(theirs.newest, ours.newest);
}

}  // namespace berth::rpc
