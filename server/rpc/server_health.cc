#include "server/rpc/server_health.h"

#include <grpcpp/health_check_service_interface.h>

#include <utility>

namespace berth::rpc {
namespace {

bool is_serving(const ServerHealth::Snapshot& snapshot) {
  return snapshot.health == v1::HEALTH_SERVING;
}

}  // namespace

ServerHealth::Snapshot ServerHealth::get() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

void ServerHealth::set_serving() { set({v1::HEALTH_SERVING, ""}); }

void ServerHealth::set_degraded(const std::string& reason) {
  set({v1::HEALTH_DEGRADED, "store_degraded: " + reason});
}

void ServerHealth::set_stopping() { set({v1::HEALTH_STOPPING, "the server is stopping"}); }

void ServerHealth::announce_by(grpc::HealthCheckServiceInterface* service) {
  const std::lock_guard lock(mutex_);
  service_ = service;
  if (service_) service_->SetServingStatus(is_serving(now_));
}

void ServerHealth::set(Snapshot next) {
  const std::lock_guard lock(mutex_);
  if (now_.health == v1::HEALTH_STOPPING) return;
  now_ = std::move(next);
  if (service_) service_->SetServingStatus(is_serving(now_));
}

}  // namespace berth::rpc
