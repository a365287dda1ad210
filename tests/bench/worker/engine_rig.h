// What stands around one engine: berthd and a berth-worker with a CPU pool, each a process of its
// own, the client library joined here, and beside them the echo server on a unix socket.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "berth/bench/echo.grpc.pb.h"
#include "berth/v1/admin.grpc.pb.h"
#include "tests/bench/rpc/local_server.h"
#include "worker/client/client.h"
#include "worker/replay/local_fleet.h"

namespace berth::bench {

inline constexpr uint64_t kObjectBytes = uint64_t{1} << 20;

class EngineRig {
 public:
  // A pool for so many objects of 1 MiB. Errors: of any step, with the logs.
  static Result<EngineRig> start(uint64_t objects);

  client::Client& client() { return *client_; }
  const client::Namespace& name_space() const { return namespace_; }
  Echo::Stub& echo() { return *echo_; }

  // Digests of a chain of objects that nobody has stored yet.
  std::vector<std::byte> next_chain(uint64_t count);
  // Everything leaves; returns when the pool is empty.
  Result<> evict_all();

 private:
  EngineRig(replay::LocalFleet fleet, WorkFolder folder)
      : fleet_(std::move(fleet)), folder_(std::move(folder)) {}
  Result<> connect();

  replay::LocalFleet fleet_;
  WorkFolder folder_;
  std::optional<LocalServer> echo_server_;
  std::unique_ptr<Echo::Stub> echo_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<client::Client> client_;
  client::Namespace namespace_;
  uint64_t objects_ = 0;  // that chains were made of
};

}  // namespace berth::bench
