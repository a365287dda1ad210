// The server side of the floor: gRPC's callback API and our server settings, as berthd has them,
// and nothing behind it. Runs in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "berth/bench/echo.grpc.pb.h"

namespace berth::bench {

// Serves at the addresses until SIGTERM or SIGINT. Returns the exit code.
int run_echo_server(const std::vector<std::string>& addresses);

}  // namespace berth::bench
