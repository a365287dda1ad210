// One join: the worker process it reached, the session it speaks for, and the memory it mapped.
// Replaced as a whole when the client joins again; whoever is still using it keeps it alive and
// sees `detached`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "berth/v1/worker.grpc.pb.h"
#include "worker/client/mapping.h"
#include "worker/client/session.h"

namespace berth::client {

struct Attachment {
  std::shared_ptr<Session> session;
  LifeDescriptor life;  // reset by leave(), as maps
  // Replaced when a pool of another worker comes or goes; who uses an earlier one keeps it alive.
  std::shared_ptr<const PoolMaps> maps;
  std::vector<std::weak_ptr<const PoolMaps>> earlier_maps;
  std::unique_ptr<v1::Worker::StubInterface> stub;
  uint64_t worker_incarnation = 0;
  std::string worker_name;
  uint32_t batch_items_max = 0;  // zero: unknown, the worker checks
  std::string token;
  // What the session takes over when the join is published.
  OperationNumber operation_used = 0;
  StopFlag detached = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace berth::client
