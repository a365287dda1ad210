// A failed call as a Failure: who said no (nobody, the server, or something that is not a Berth
// server), and what the person at the keyboard can do about it.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>
#include <string>

#include "common/time.h"
#include "server/ctl/failure.h"

namespace berth::ctl {

// `status` is not ok. `timeout` is the deadline that the call had, if any.
//
//   ErrorInfo, UNAVAILABLE        kNotReady     the server is there and says that it cannot do this
//   now ErrorInfo, any other code     kRefused UNAVAILABLE without           kUnreachable  said by
//   gRPC itself: no connection DEADLINE_EXCEEDED without     kUnreachable  connected or not,
//   nothing answered in time UNIMPLEMENTED without         kRefused      another kind of server, or
//   an older one
Failure failure_of(const grpc::Status& status, const std::string& address,
                   std::optional<Duration> timeout);

}  // namespace berth::ctl
