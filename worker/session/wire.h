// Between wire forms and ours: 16-byte fields, refusals inside Link and what each means for the
// request that was refused. Pure: values in, values out, and no gRPC (common/rpc_status.h has it).
#pragma once

#include <string>

#include "berth/v1/error.pb.h"
#include "common/error.h"
#include "common/ids.h"

namespace berth::worker {

// High half first. Anything but 16 bytes gives the invalid id.
Id128 id128_from_bytes(const std::string& bytes);
std::string to_bytes(const Id128& id);

// An answer's refusal. Without a reason that we know, it is told from the gRPC code.
Error error_from_wire(const v1::StatusDetails& status);

// What the caller of a request can do about a refusal of the server.
enum class Refusal : uint8_t {
  kAgain,      // same request, later
  kStale,      // this Link is no longer good: attach again
  kNoSession,  // the server does not know the client session (any more)
  kFinal,      // the request itself is refused
};
Refusal judge(const Error& error);

}  // namespace berth::worker
