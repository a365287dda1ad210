#include "server/directory/usage.h"

namespace berth {

PoolUsage& PoolUsage::operator+=(const PoolUsage& other) {
  reserved_bytes += other.reserved_bytes;
  ready_bytes += other.ready_bytes;
  ready_allocated_bytes += other.ready_allocated_bytes;
  retiring_bytes += other.retiring_bytes;
  quarantined_bytes += other.quarantined_bytes;
  reserved_replicas += other.reserved_replicas;
  ready_replicas += other.ready_replicas;
  retiring_replicas += other.retiring_replicas;
  quarantined_replicas += other.quarantined_replicas;
  hard_pin_bytes += other.hard_pin_bytes;
  pins += other.pins;
  return *this;
}

PoolUsage usage_of(const Replica& replica, const Pool& pool, int64_t sign) {
  PoolUsage usage;
  const int64_t pages = sign * static_cast<int64_t>(pool.pages_bytes(replica.size_bytes));
  switch (replica.state) {
    case ReplicaState::kReserved:
      usage.reserved_bytes = pages;
      usage.reserved_replicas = sign;
      break;
    case ReplicaState::kReady:
      usage.ready_bytes = sign * static_cast<int64_t>(replica.size_bytes);
      usage.ready_allocated_bytes = pages;
      usage.ready_replicas = sign;
      break;
    case ReplicaState::kRetiring:
      usage.retiring_bytes = pages;
      usage.retiring_replicas = sign;
      break;
    case ReplicaState::kQuarantined:
      usage.quarantined_bytes = pages;
      usage.quarantined_replicas = sign;
      break;
  }
  return usage;
}

PoolUsage usage_of(const Pin& pin, const Replica& replica, const Pool& pool, int64_t sign) {
  PoolUsage usage;
  usage.pins = sign;
  if (pin.kind == PinKind::kHard)
    usage.hard_pin_bytes = sign * static_cast<int64_t>(pool.pages_bytes(replica.size_bytes));
  return usage;
}

NamespaceUsage& NamespaceUsage::operator+=(const NamespaceUsage& other) {
  allocated_bytes += other.allocated_bytes;
  retiring_bytes += other.retiring_bytes;
  ready_bytes += other.ready_bytes;
  replicas += other.replicas;
  return *this;
}

NamespaceUsage namespace_usage_of(const Replica& replica, const Pool& pool, int64_t sign) {
  NamespaceUsage usage;
  usage.allocated_bytes = sign * static_cast<int64_t>(pool.pages_bytes(replica.size_bytes));
  if (replica.state == ReplicaState::kRetiring) usage.retiring_bytes = usage.allocated_bytes;
  if (replica.state == ReplicaState::kReady)
    usage.ready_bytes = sign * static_cast<int64_t>(replica.size_bytes);
  usage.replicas = sign;
  return usage;
}

}  // namespace berth
