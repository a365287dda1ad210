// The client side of a gRPC connection, with our settings, and deadlines for its calls. Channels
// are thread-safe and reconnect by themselves; every call needs a deadline of its own.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <string_view>

#include "common/address.h"
#include "common/error.h"
#include "common/time.h"

namespace berth {

struct ChannelOptions {
  Exposure exposure = Exposure::kLocalOnly;
  // gRPC shares one connection among all channels of a process to the same address, back-off
  // included. A session that must not inherit another's trouble takes its own.
  bool own_connection = false;
};

// Connects lazily; never goes through an HTTP proxy. `name` is the option that held the address.
// Errors: kInvalidConfig for plain TCP beyond this host without kInsecureAllowed.
Result<std::shared_ptr<grpc::Channel>> make_channel(std::string_view name, const Address& address,
                                                    const ChannelOptions& options = {});

// A deadline that far from now. gRPC's own span of time, so that no wall clock is involved.
gpr_timespec deadline_in(Duration within);
void set_deadline(grpc::ClientContext& context, Duration within);

}  // namespace berth
