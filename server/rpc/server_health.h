// Whether the server serves, and if not, why: one truth for grpc.health.v1, GetStatus, /readyz and
// the service manager's status line.
//
//   starting ─▶ serving ◀─▶ degraded (the store cannot be written)
//                  └──────────┴──▶ stopping, for good
//
// Thread-safe.
#pragma once

#include <mutex>
#include <string>

#include "berth/v1/admin.pb.h"

namespace grpc {
class HealthCheckServiceInterface;
}

namespace berth::rpc {

class ServerHealth {
 public:
  struct Snapshot {
    v1::Health health = v1::HEALTH_STARTING;
    std::string reason;
  };

  Snapshot get() const;
  void set_serving();
  void set_degraded(const std::string& reason);
  void set_stopping();

  // From now on `service` says the same. It must outlive this, or be taken away with nullptr.
  void announce_by(grpc::HealthCheckServiceInterface* service);

 private:
  void set(Snapshot next);

  mutable std::mutex mutex_;  // guards everything below
  Snapshot now_;
  grpc::HealthCheckServiceInterface* service_ = nullptr;
};

}  // namespace berth::rpc
